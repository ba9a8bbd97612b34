package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Redactor replaces literals by keyed hashes: the same value reads as the same hash wherever it stood, so that records
// can be found by a value that somebody knows, and whoever has the log but not the key learns no value from it.
//
// In SQL it replaces strings, numbers and comments, and names in double quotes that the record's refs do not know, since
// some dialects write strings so. In questions and details it replaces numbers and what stands in quotes. A value that
// somebody wrote in a question without quotes it cannot tell from other words.
type Redactor struct{ key []byte }

// OpenRedactor reads the key of a Redactor from a file, and makes one, readable only by its owner, if it is missing.
func OpenRedactor(path string) (*Redactor, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeFolder(filepath.Dir(path)); err == nil {
			err = writeNew(path, []byte(rand.Text()+rand.Text()+"\n"))
		}
		if err == nil {
			b, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the key for redaction: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) < 32 {
		return nil, fmt.Errorf("open the key for redaction %s: it has %d bytes; 32 random ones are needed", path, len(b))
	}
	return &Redactor{key: b}, nil
}

// Hash returns what a value is replaced by.
func (d *Redactor) Hash(value string) string {
	mac := hmac.New(sha256.New, d.key)
	mac.Write([]byte(value))
	return "#" + hex.EncodeToString(mac.Sum(nil)[:12])
}

// Redact is for a Log's field of that name.
func (d *Redactor) Redact(r *Record) {
	names := namesOf(r)
	r.Question, r.Detail = d.text(r.Question), d.text(r.Detail)
	r.SQL, r.GuardedSQL = d.sql(r.SQL, names), d.sql(r.GuardedSQL, names)
	r.Output = slices.Clone(r.Output)
	for i := range r.Output { // some databases call a column by the expression that makes it
		r.Output[i].Name = d.sql(r.Output[i].Name, names)
	}
}

// namesOf returns the parts of the names of what a record says was read or shown.
func namesOf(r *Record) map[string]bool {
	names := map[string]bool{}
	for _, refs := range [][]string{r.Read, r.Filters, r.Returned} {
		for _, ref := range refs {
			for part := range strings.SplitSeq(ref, ".") {
				names[strings.ToLower(strings.Trim(part, `"`))] = true
			}
		}
	}
	return names
}

// sql replaces the literals of a statement of any dialect. Where dialects differ about the end of a literal, or where it
// has none, all that follows is taken for one.
func (d *Redactor) sql(s string, names map[string]bool) string {
	var out strings.Builder
	for s != "" {
		n, value := 1, ""
		switch {
		case s[0] == '\'':
			n, value = quoted(s)
		case s[0] == '"':
			if n, value = quoted(s); n < len(s) && names[strings.ToLower(value)] {
				value = ""
			}
		case s[0] == '`':
			if n = 1 + until(s[1:], "`"); n == len(s) || strings.ContainsAny(s[:n], `'"`) {
				n, value = len(s), s
			}
		case s[0] == '[' && strings.Count(s[:until(s, "]")], "'")%2 == 1:
			n, value = len(s), s
		case s[0] == '$':
			n, value = dollarQuoted(s)
		case strings.HasPrefix(s, "--"), s[0] == '#':
			n, value = comment(s, "\n")
		case strings.HasPrefix(s, "/*"):
			n, value = comment(s, "*/")
		case isDigit(s[0]):
			n = number(s, ".")
			value = s[:n]
		case isWord(s):
			n = word(s)
		}
		if value == "" {
			out.WriteString(s[:n])
		} else {
			out.WriteString("'" + d.Hash(value) + "'")
		}
		s = s[n:]
	}
	return out.String()
}

// quotes are the pairs of quotation marks that people use.
var quotes = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '«': '»', '„': '“'}

// text replaces the numbers and the quoted parts of something that a person or a program wrote. A quotation mark within
// a word is an apostrophe.
func (d *Redactor) text(s string) string {
	var out strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		closing, opens := quotes[r]
		switch {
		case opens && strings.ContainsRune(s[size:], closing):
			n := size + strings.IndexRune(s[size:], closing)
			out.WriteString(s[:size] + d.Hash(s[size:n]) + string(closing))
			s = s[n+utf8.RuneLen(closing):]
		case isDigit(s[0]):
			n := number(s, ".,-:/+")
			out.WriteString(d.Hash(s[:n]))
			s = s[n:]
		case isWord(s):
			n := word(s)
			if rest := s[n:]; strings.HasPrefix(rest, "'") && isWord(rest[1:]) {
				n += 1 + word(rest[1:])
			}
			out.WriteString(s[:n])
			s = s[n:]
		default:
			out.WriteString(s[:size])
			s = s[size:]
		}
	}
	return out.String()
}

// quoted returns the length of the literal that s begins with, and its value. A mark that is doubled stands for itself.
func quoted(s string) (int, string) {
	mark := s[0]
	var value []byte
	if len(s) > 2 && s[1] == mark && s[2] == mark { // some dialects have triple marks
		return len(s), s
	}
	for i := 1; i < len(s); i++ {
		next := byte(0)
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch {
		case s[i] == '\\' && next == mark: // an escape to some dialects and to others the end
			return len(s), s
		case s[i] == mark && next == mark:
			i++
		case s[i] == mark:
			return i + 1, string(value)
		}
		value = append(value, s[i])
	}
	return len(s), s
}

// dollarQuoted is quoted for a string between $tag$ and $tag$. A $ that begins none is one byte.
func dollarQuoted(s string) (int, string) {
	tag := 1 + word(s[1:])
	if tag == len(s) || s[tag] != '$' || isDigit(s[1]) {
		return 1, ""
	}
	tag++
	n := tag + until(s[tag:], s[:tag])
	return n, strings.TrimSuffix(s[tag:n], s[:tag])
}

// comment returns the length of the comment that s begins with, and its text.
func comment(s, end string) (int, string) {
	n := until(s, end)
	if strings.ContainsAny(s[:n], "'\"`") || strings.Contains(s[1:n], "/*") {
		n = len(s)
	}
	return n, s[:n]
}

// until returns how far it is to the end of the first end in s, or to the end of s.
func until(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// word returns the length of the word that s begins with.
func word(s string) int {
	n := 0
	for isWord(s[n:]) {
		_, size := utf8.DecodeRuneInString(s[n:])
		n += size
	}
	return n
}

// number returns the length of the number that s begins with. The characters of within may stand between its digits, as
// in 1.5, 123-45-6789 or 2024-01-31.
func number(s, within string) int {
	n := word(s)
	for n+1 < len(s) && strings.IndexByte(within, s[n]) >= 0 && isDigit(s[n+1]) {
		n += 1 + word(s[n+1:])
	}
	return n
}
