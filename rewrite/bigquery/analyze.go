//go:build bigquery

package bigquery

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// names is the catalog that one statement is analyzed over: the built-in functions, and the tables that were added under
// the names by which the statement can mean them. It lives as long as a resolved statement is read.
type names struct {
	engine *engine
	types  *googlesql.TypeFactory
	root   *googlesql.MultiCatalog
	tables *googlesql.SimpleCatalog
	inner  map[string]*googlesql.SimpleCatalog // by path in lower case, as GoogleSQL compares names
	added  map[string]catalog.Ref              // by path in lower case
	made   []*googlesql.SimpleTable            // SimpleCatalog does not own them
	source map[string]source                   // by the name that a resolved scan tells
}

// source is a table under the name that it was added by.
type source struct {
	table   *rewrite.Table
	columns []*rewrite.Column // in the order of the added table
}

// shape is a column as a statement sees it.
type shape struct {
	column *rewrite.Column
	typ    googlesql.Googlesql_TypeNode
}

func (e *engine) names() (*names, error) {
	if e.used.Add(1)%collected == 0 {
		runtime.GC()
	}
	n := &names{engine: e, inner: map[string]*googlesql.SimpleCatalog{}, added: map[string]catalog.Ref{}, source: map[string]source{}}
	var err error
	if n.types, err = googlesql.NewTypeFactory(); err != nil {
		return nil, err
	}
	if n.tables, err = googlesql.NewSimpleCatalog("tables", n.types); err != nil {
		return nil, err
	}
	n.root, err = googlesql.NewMultiCatalogCreate("root", []googlesql.CatalogNode{n.tables, e.builtins})
	return n, err
}

// add puts a table under a path. It reports false if another table already has the path but for letter case.
func (n *names) add(path []string, t *rewrite.Table, columns []shape) (bool, error) {
	key := strings.ToLower(quotePath(path))
	if other, ok := n.added[key]; ok {
		return other == t.Ref, nil
	}
	n.added[key] = t.Ref
	at := n.tables
	for i := range path[:len(path)-1] {
		key := strings.ToLower(quotePath(path[:i+1]))
		if n.inner[key] == nil {
			c, err := googlesql.NewSimpleCatalog(path[i], n.types)
			if err != nil {
				return false, err
			}
			if err := at.AddCatalog2(path[i], c); err != nil {
				return false, err
			}
			n.inner[key] = c
		}
		at = n.inner[key]
	}
	// The name tells the scans of a resolved statement apart, and is the same for all paths to a table.
	id := t.Ref.String()
	made, err := googlesql.NewSimpleTable(id, 0)
	if err != nil {
		return false, err
	}
	src := source{table: t}
	for _, c := range columns {
		col, err := googlesql.NewSimpleColumn(id, c.column.Name, c.typ, false, true)
		if err != nil {
			return false, err
		}
		if err := made.AddColumn2(col, false); err != nil {
			return false, err
		}
		n.made = append(n.made, made)
		src.columns = append(src.columns, c.column)
	}
	n.source[id] = src
	n.made = append(n.made, made)
	return true, at.AddTable2(path[len(path)-1], made)
}

// typeOf reads a type as a catalog writes it.
func (n *names) typeOf(declared string) (googlesql.Googlesql_TypeNode, error) {
	t, err := googlesql.AnalyzeType(standard(declared), n.engine.analyzer, n.root, n.types)
	if err != nil {
		return nil, fmt.Errorf("type %q: %s", declared, firstLine(err))
	}
	return t, nil
}

var integers = regexp.MustCompile(`(?i)\b(INT|SMALLINT|INTEGER|BIGINT|TINYINT|BYTEINT)\b`)
var floats = regexp.MustCompile(`(?i)\bFLOAT\b`)
var booleans = regexp.MustCompile(`(?i)\bBOOLEAN\b`)

// standard writes BigQuery's other names of types by the ones that GoogleSQL knows.
func standard(declared string) string {
	s := integers.ReplaceAllString(declared, "INT64")
	s = floats.ReplaceAllString(s, "FLOAT64")
	return booleans.ReplaceAllString(s, "BOOL")
}

// resolved is a statement that the analyzer bound.
type resolved struct {
	names   *names
	output  *googlesql.AnalyzerOutput
	query   *googlesql.ResolvedQueryStmt
	meaning string
}

// analyze binds a statement. The error is an *acl.Refusal if the statement is at fault.
func (n *names) analyze(sql string) (*resolved, error) {
	out, err := googlesql.AnalyzeStatement(sql, n.engine.analyzer, n.root, n.types)
	if err != nil {
		return nil, refused(err)
	}
	statement, err := out.ResolvedStatement()
	if err != nil {
		return nil, err
	}
	query, ok := statement.(*googlesql.ResolvedQueryStmt)
	if !ok {
		return nil, fmt.Errorf("a %T is no query", statement)
	}
	text, err := query.DebugString()
	if err != nil {
		return nil, err
	}
	return &resolved{names: n, output: out, query: query, meaning: located.ReplaceAllString(text, "")}, nil
}

// done says that the statement is read: what it is made of may go.
func (r *resolved) done() { runtime.KeepAlive(r.names); runtime.KeepAlive(r.output) }

// located matches what the printed form of a resolved statement says of places in its text, and the aliases of tables,
// which mean nothing once names are bound.
var located = regexp.MustCompile(`\w*location=\d+-\d+|, alias="(?:[^"\\]|\\.)*"`)

// complaints are the analyzer's words for names that do not resolve. What it says of them it says of the visible catalog
// only; the asker is told in the words of every dialect.
var complaints = []struct {
	match     *regexp.Regexp
	ambiguous bool
}{
	{match: regexp.MustCompile("^Unrecognized name: ([^;\\[]+)")},
	{match: regexp.MustCompile("^Table not found: ([^;\\[]+)")},
	{match: regexp.MustCompile("^Dataset not found: ([^;\\[]+)")},
	{match: regexp.MustCompile("^Name (.+?) not found inside (.+?)(?: \\[|$|;)")},
	{match: regexp.MustCompile("^Field name (.+?) does not exist in ")},
	{match: regexp.MustCompile("^Column (.+?) in USING clause not found ")},
	{match: regexp.MustCompile("^Column (.+?) in SELECT \\* (?:EXCEPT|REPLACE) list does not exist")},
	{match: regexp.MustCompile("^Alias (.+?) (?:not found|cannot be found)")},
	{match: regexp.MustCompile("^Column name (.+?) is ambiguous"), ambiguous: true},
	{match: regexp.MustCompile("^Name (.+?) is ambiguous"), ambiguous: true},
	{match: regexp.MustCompile("^Column (.+?) in USING clause is ambiguous"), ambiguous: true},
	{match: regexp.MustCompile("^(?:Duplicate table alias|Duplicate alias) (.+?) (?:in|found)"), ambiguous: true},
}

var place = regexp.MustCompile(` \[at \d+:\d+\]$`)

func refused(err error) *acl.Refusal {
	line := place.ReplaceAllString(firstLine(err), "")
	for _, c := range complaints {
		m := c.match.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		said := strings.TrimSpace(strings.ReplaceAll(m[1], "`", ""))
		if len(m) > 2 {
			said = strings.ReplaceAll(m[2], "`", "") + "." + said
		}
		if c.ambiguous {
			return ambiguous(said)
		}
		return acl.NotAvailable(said, firstLine(err))
	}
	line, _, _ = strings.Cut(line, "; Did you mean")
	no := invalid(line)
	no.Detail = firstLine(err)
	return no
}

func ambiguous(said string) *acl.Refusal {
	return &acl.Refusal{
		Code:   acl.CodeAmbiguous,
		Public: said + " could be a column of several tables",
		Hint:   "write the table or its alias in front",
	}
}
