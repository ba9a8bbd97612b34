package tsql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// kind is what a token is.
type kind uint8

const (
	word   kind = iota // a keyword or a bare name; its text is as written
	quoted             // a name in brackets or double quotes; its text is the name
	text               // '...'; its text is the value
	national
	number
	variable
	symbol
)

// token is the smallest thing that SQL Server tells apart in a text.
type token struct {
	kind kind
	text string
	at   int // where it begins and ends, in bytes, in a text that was scanned
	end  int
	// The rest is of a token to be printed. optional says that the grammar lets it be left out; glue that no space stands
	// in front of it; tight that none stands behind it; or is another word for the same.
	optional, glue, tight bool
	or                    string
}

// scan cuts a text into tokens by SQL Server's own rules, independently of the parser: nested comments, brackets,
// strings. What it does not know is no token of a query.
func scan(sql string) ([]token, error) {
	out := make([]token, 0, len(sql)/3)
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == ' ' || '\t' <= c && c <= '\r':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			n := strings.IndexByte(sql[i:], '\n')
			if n < 0 {
				n = len(sql) - i
			}
			i += n
		case strings.HasPrefix(sql[i:], "/*"):
			end, ok := comment(sql, i)
			if !ok {
				return nil, invalid("a comment has no end", i)
			}
			i = end
		case c == '\'':
			value, end, ok := enclosed(sql, i, '\'')
			if !ok {
				return nil, invalid("a text has no end", i)
			}
			out = append(out, token{kind: text, text: value, at: i, end: end})
			i = end
		case (c == 'N' || c == 'n') && i+1 < len(sql) && sql[i+1] == '\'':
			value, end, ok := enclosed(sql, i+1, '\'')
			if !ok {
				return nil, invalid("a text has no end", i)
			}
			out = append(out, token{kind: national, text: value, at: i, end: end})
			i = end
		case c == '[' || c == '"':
			value, end, ok := enclosed(sql, i, map[byte]byte{'[': ']', '"': '"'}[c])
			if !ok || value == "" {
				return nil, invalid("a quoted name is empty or has no end", i)
			}
			out = append(out, token{kind: quoted, text: value, at: i, end: end})
			i = end
		case '0' <= c && c <= '9':
			end := numeral(sql, i)
			if r, _ := utf8.DecodeRuneInString(sql[end:]); inWord(r) || strings.HasPrefix(sql[end:], ".") {
				return nil, invalid("a number ends in a letter", end)
			}
			out = append(out, token{kind: number, text: sql[i:end], at: i, end: end})
			i = end
		case strings.IndexByte(".,;()=<>!+-*/%&|^~", c) >= 0:
			n := 1
			for _, s := range []string{"<>", "<=", ">=", "!=", "!<", "!>", "||"} {
				if strings.HasPrefix(sql[i:], s) {
					n = 2
				}
			}
			out = append(out, token{kind: symbol, text: sql[i : i+n], at: i, end: i + n})
			i += n
		default:
			end := i
			for end < len(sql) {
				r, size := utf8.DecodeRuneInString(sql[end:])
				if !inWord(r) {
					break
				}
				end += size
			}
			if end == i {
				r, size := utf8.DecodeRuneInString(sql[i:])
				if unicode.IsSpace(r) {
					i += size
					continue
				}
				return nil, invalid(fmt.Sprintf("the character %q means nothing here", r), i)
			}
			k := word
			if c == '@' {
				k = variable
			}
			out = append(out, token{kind: k, text: sql[i:end], at: i, end: end})
			i = end
		}
	}
	return out, nil
}

func inWord(r rune) bool {
	return r == '_' || r == '@' || r == '#' || '0' <= r && r <= '9' || r != utf8.RuneError && unicode.IsLetter(r)
}

// uncommented is a text with spaces in the place of its comments, so that the parser need not know where they end.
func uncommented(sql string, tokens []token) string {
	if !strings.Contains(sql, "--") && !strings.Contains(sql, "/*") {
		return sql
	}
	b := []byte(strings.Repeat(" ", len(sql)))
	for i := range len(sql) {
		if sql[i] == '\n' {
			b[i] = '\n'
		}
	}
	for _, t := range tokens {
		copy(b[t.at:t.end], sql[t.at:t.end])
	}
	return string(b)
}

// comment returns the end of a comment, in which comments nest.
func comment(sql string, i int) (end int, ok bool) {
	depth := 0
	for i < len(sql) {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(sql[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i, true
			}
		default:
			i++
		}
	}
	return 0, false
}

// enclosed reads what stands between a mark at i and the closing one, which is written twice where it means itself.
func enclosed(sql string, i int, closing byte) (value string, end int, ok bool) {
	start := i + 1
	doubled := false
	for i = start; i < len(sql); i++ {
		if sql[i] != closing {
			continue
		}
		if i+1 < len(sql) && sql[i+1] == closing {
			doubled = true
			i++
			continue
		}
		value = sql[start:i]
		if doubled {
			value = strings.ReplaceAll(value, string([]byte{closing, closing}), string(closing))
		}
		return value, i + 1, true
	}
	return "", 0, false
}

// numeral returns the end of a number: 12, 1.5, 5., 1e-3, 0xAF.
func numeral(sql string, i int) int {
	digits := func() {
		for i < len(sql) && '0' <= sql[i] && sql[i] <= '9' {
			i++
		}
	}
	if strings.HasPrefix(sql[i:], "0x") || strings.HasPrefix(sql[i:], "0X") {
		for i += 2; i < len(sql) && strings.IndexByte("0123456789abcdefABCDEF", sql[i]) >= 0; i++ {
		}
		return i
	}
	digits()
	if i < len(sql) && sql[i] == '.' {
		i++
		digits()
	}
	if i+1 < len(sql) && (sql[i] == 'e' || sql[i] == 'E') {
		exponent := i + 1
		if sql[exponent] == '+' || sql[exponent] == '-' {
			exponent++
		}
		if exponent < len(sql) && '0' <= sql[exponent] && sql[exponent] <= '9' {
			i = exponent
			digits()
		}
	}
	return i
}

// is reports whether a token is a keyword, which is made of ASCII letters.
func (t token) is(w string) bool {
	return t.kind == word && len(t.text) == len(w) && strings.EqualFold(t.text, w)
}

// statements are the words that begin a statement. All of them are reserved, so none can stand bare in a query.
var statements = words(`alter backup begin break checkpoint close commit continue create dbcc deallocate declare
	delete deny drop exec execute goto grant if insert kill lineno load merge print raiserror readtext
	reconfigure restore return revert revoke rollback save set setuser shutdown throw truncate
	update updatetext use waitfor while writetext`)

// prelude are those of them that come before a query in the texts that people write.
var prelude = words(`begin declare if print set use while`)

// changes are those of them that a WITH may stand in front of.
var changes = words(`delete insert merge update`)

// query refuses what cannot be one query before the parser sees it: the parser is made for whole programs.
func query(sql string) ([]token, error) {
	tokens, err := scan(sql)
	if err != nil {
		return nil, err
	}
	for len(tokens) > 0 && tokens[0].text == ";" && tokens[0].kind == symbol {
		tokens = tokens[1:]
	}
	for n := len(tokens); n > 0 && tokens[n-1].text == ";" && tokens[n-1].kind == symbol; n-- {
		tokens = tokens[:n-1]
	}
	if len(tokens) == 0 {
		return nil, invalid("there is no statement in it", 0)
	}
	open, cases, signs := 0, 0, 0
	for i, t := range tokens {
		switch {
		case t.kind == symbol && t.text == "(":
			open++
		case t.kind == symbol && t.text == ")":
			open--
		case t.is("case"):
			cases++
		case t.is("end"):
			cases--
		case t.kind == word && statements[strings.ToLower(t.text)]:
			behind := tokens[0].is("with") && changes[strings.ToLower(t.text)]
			if behind || i == 0 && !(prelude[strings.ToLower(t.text)] && hasQuery(tokens[1:])) {
				return nil, &acl.Refusal{
					Code: acl.CodeNotReadOnly, Public: "the statement does more than read", Hint: "send a SELECT",
					Detail: fmt.Sprintf("%s at byte %d", strings.ToUpper(t.text), t.at),
				}
			}
			return nil, severalStatements(t)
		case t.kind == symbol && t.text == ";":
			return nil, severalStatements(t)
		}
		// Words and signs in front of an expression nest without parentheses.
		if t.is("not") || t.kind == symbol && strings.Contains("+-~", t.text) {
			signs++
		} else {
			signs = 0
		}
		if max(open, 0)+max(cases, 0)+signs > maxDepth {
			return nil, tooLarge(fmt.Sprintf("it is nested more than %d levels deep", maxDepth))
		}
	}
	if t := tokens[0]; !t.is("select") && !t.is("with") && t.text != "(" {
		return nil, invalid(fmt.Sprintf("a statement does not begin with %s", t.text), t.at)
	}
	return tokens, nil
}

func hasQuery(tokens []token) bool {
	for _, t := range tokens {
		if t.is("select") {
			return true
		}
	}
	return false
}

func severalStatements(t token) *acl.Refusal {
	return &acl.Refusal{
		Code: acl.CodeMultipleStatements, Public: "the text holds several statements; one is run at a time",
		Hint: "send one SELECT, with values in the place of variables", Detail: fmt.Sprintf("%s at byte %d", t.text, t.at),
	}
}

// covers checks that the tokens of a tree are those of the text that it was parsed from, so that the parser lost and
// made up nothing: whatever SQL Server makes of the text, it makes of what is printed.
func covers(text, printed []token) *acl.Refusal {
	i := 0
	for _, p := range printed {
		if i < len(text) && matches(text[i], p) {
			if p.kind == quoted && text[i].kind == word && isReserved(p.text) {
				return invalid(fmt.Sprintf("%s is a reserved word; as a name it needs brackets", p.text), text[i].at)
			}
			i++
			continue
		}
		if p.optional {
			continue
		}
		if i == len(text) {
			return invalid("it ends too early", 0)
		}
		return misread(text[i])
	}
	if i < len(text) {
		return misread(text[i])
	}
	return nil
}

func misread(t token) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeNotSupported,
		Public: fmt.Sprintf("%s is not supported in this place", t.text),
		Hint:   "write the query in another way",
		Detail: fmt.Sprintf("the parser does not account for %q at byte %d", t.text, t.at),
	}
}

func matches(t, p token) bool {
	switch p.kind {
	case quoted: // a name, however it was written
		return (t.kind == quoted || t.kind == word) && t.text == p.text
	case word:
		return t.is(p.text) || p.or != "" && t.is(p.or)
	}
	return t.kind == p.kind && t.text == p.text
}

// isReserved reports whether a word means something else where it stands bare.
func isReserved(w string) bool {
	if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || strings.EqualFold(w, "label") {
		return false // none is made of anything else, and LABEL is one to another product
	}
	q, err := templates.Quote(catalog.TSQL, w)
	return err != nil || q != w
}

// words makes a set of the words of a list.
func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}
