package catalog

import (
	"fmt"
	"strings"
)

// Dialect names the SQL dialect of a database. It owns the rules for letter case: only it can tell whether two names
// are the same name.
type Dialect string

// The dialects that a catalog can hold. Which of them have a guard is decided by package rewrite.
const (
	SQLite    Dialect = "sqlite"
	MySQL     Dialect = "mysql"
	Postgres  Dialect = "postgres"
	TSQL      Dialect = "tsql"
	BigQuery  Dialect = "bigquery"
	Snowflake Dialect = "snowflake"
)

// Dialects lists all dialects.
var Dialects = [...]Dialect{SQLite, MySQL, Postgres, TSQL, BigQuery, Snowflake}

// ParseDialect returns the dialect of that name.
func ParseDialect(s string) (Dialect, error) {
	for _, d := range Dialects {
		if string(d) == s {
			return d, nil
		}
	}
	return "", fmt.Errorf("unknown dialect %q; known are sqlite, mysql, postgres, tsql, bigquery, snowflake", s)
}

// Part is a place in a qualified name. Dialects fold the case of some parts and not of others.
type Part uint8

// The parts of a qualified name.
const (
	PartDatabase Part = iota
	PartSchema
	PartTable
	PartColumn
)

// Key returns the spelling under which two stored names of one part are the same name exactly if their keys are equal.
// It is for names as the catalog stores them; how an unquoted name in a statement reads is the parser's business.
func (d Dialect) Key(p Part, name string) string {
	switch d {
	case SQLite:
		return asciiLower(name) // SQLite folds ASCII only: https://sqlite.org/lang_keywords.html
	case TSQL:
		return strings.ToLower(name) // the default collation ignores case
	case MySQL, BigQuery:
		// Tables and databases are files on a case-sensitive system; a server that folds them only makes us stricter.
		if p == PartColumn {
			return strings.ToLower(name)
		}
	}
	return name // PostgreSQL and Snowflake fold on reading and then compare exactly
}

// RefKey returns r in the spelling that Dialect.Key gives each part.
func (d Dialect) RefKey(r Ref) Ref {
	if r.Kind != KindTable && r.Kind != KindColumn {
		return r
	}
	r.Database = d.Key(PartDatabase, r.Database)
	r.Schema = d.Key(PartSchema, r.Schema)
	r.Table = d.Key(PartTable, r.Table)
	r.Column = d.Key(PartColumn, r.Column)
	return r
}

func asciiLower(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; 'A' <= c && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
