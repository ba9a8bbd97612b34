package templates

import (
	_ "embed" // the lists of reserved words
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/schemagate/schemagate/catalog"
)

// Each list has a heading and then one lower-case word a line.
var (
	//go:embed reserved/sqlite.txt
	reservedSQLite string
	//go:embed reserved/mysql.txt
	reservedMySQL string
	//go:embed reserved/postgres.txt
	reservedPostgres string
	//go:embed reserved/tsql.txt
	reservedTSQL string
	//go:embed reserved/bigquery.txt
	reservedBigQuery string
	//go:embed reserved/snowflake.txt
	reservedSnowflake string
)

// Quote writes a name as an identifier of the dialect: bare if that reads back as the same name, quoted otherwise. It
// fails for a name that no single line of SQL can hold: an empty one, one that is not UTF-8, and one with control
// characters or line separators.
func Quote(d catalog.Dialect, name string) (string, error) {
	switch {
	case reservedWords(d) == "":
		return "", fmt.Errorf("templates: no quoting rules for dialect %q", d)
	case name == "":
		return "", fmt.Errorf("templates: an empty name is no %s identifier", d)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("templates: %q is not UTF-8 and so no %s identifier", name, d)
	case strings.ContainsFunc(name, breaksLine):
		return "", fmt.Errorf("templates: %q holds control characters or line breaks and so is no %s identifier; rename it at its source or give it a SQL view", name, d)
	case isBare(d, name):
		return name, nil
	}
	switch d {
	case catalog.MySQL:
		return "`" + strings.ReplaceAll(name, "`", "``") + "`", nil
	case catalog.BigQuery:
		return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`", nil
	case catalog.TSQL:
		return "[" + strings.ReplaceAll(name, "]", "]]") + "]", nil
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`, nil
}

// QualifiedName writes a table as a statement of the dialect names it, and a column behind its table. Where the engine
// reaches a table without its database, the database is left out.
func QualifiedName(d catalog.Dialect, r catalog.Ref) (string, error) {
	if r.TableRef().IsZero() {
		return "", fmt.Errorf("templates: %s is no table or column", r)
	}
	var path []string
	switch d {
	case catalog.BigQuery, catalog.Snowflake:
		path = append(path, r.Database)
	case catalog.MySQL:
		// What MySQL calls a schema is a database.
		if r.Schema == "" {
			path = append(path, r.Database)
		}
	}
	if r.Schema != "" {
		path = append(path, r.Schema)
	}
	path = append(path, r.Table)
	if r.Kind == catalog.KindColumn {
		path = append(path, r.Column)
	}
	for i, name := range path {
		quoted, err := Quote(d, name)
		if err != nil {
			return "", err
		}
		path[i] = quoted
	}
	return strings.Join(path, "."), nil
}

// isBare reports whether the name may stand without quotes. Some dialects allow more than it does; quotes never hurt.
func isBare(d catalog.Dialect, name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	lower := strings.ToLower(name)
	switch d {
	case catalog.Postgres:
		if name != lower {
			return false
		}
	case catalog.Snowflake:
		if name != strings.ToUpper(name) {
			return false
		}
	}
	return !isReserved(d, lower)
}

// reserved holds the reserved words of each dialect. The headings of the lists are no names.
var reserved = sync.OnceValue(func() map[catalog.Dialect]map[string]bool {
	out := map[catalog.Dialect]map[string]bool{}
	for _, d := range catalog.Dialects {
		out[d] = map[string]bool{}
		for word := range strings.SplitSeq(reservedWords(d), "\n") {
			out[d][word] = true
		}
	}
	return out
})

func isReserved(d catalog.Dialect, word string) bool { return reserved()[d][word] }

func reservedWords(d catalog.Dialect) string {
	switch d {
	case catalog.SQLite:
		return reservedSQLite
	case catalog.MySQL:
		return reservedMySQL
	case catalog.Postgres:
		return reservedPostgres
	case catalog.TSQL:
		return reservedTSQL
	case catalog.BigQuery:
		return reservedBigQuery
	case catalog.Snowflake:
		return reservedSnowflake
	}
	return ""
}

// breaksLine reports whether a reader might take r for the end of a line, or drop or obey it.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp)
}
