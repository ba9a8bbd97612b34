package mysql

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// maxViews bounds how deep SQL views may read each other.
const maxViews = 32

// view is a SQL view in a statement: its definition, resolved with the rights of the asker.
type view struct {
	query   ast.ResultSetNode
	uses    []*use   // in it, and in the views that it reads
	columns []column // all of the view's, also those that the asker may not see
	printed string
}

// text prints the definition, once what it reads stands in wrappers.
func (v *view) text() (string, error) {
	if v.printed == "" {
		var err error
		if v.printed, err = text(v.query); err != nil {
			return "", err
		}
	}
	return v.printed, nil
}

// visible returns the columns of which the asker may know.
func (v *view) visible(t *rewrite.Table) []column {
	out := make([]column, 0, len(t.Columns))
	for _, c := range t.Columns {
		for _, o := range v.columns {
			if o.name == c.Name {
				if c.Mask != nil {
					o.number = number{}
				}
				out = append(out, o)
				break
			}
		}
	}
	return out
}

// expand resolves the definition of a SQL view. What is wrong with it is told in words that speak only of the view:
// that it reads something which is hidden or absent makes it not available.
func (r *resolver) expand(t *rewrite.Table, said string) (*view, error) {
	v, known := r.expanded[t.Ref]
	if known && v == nil || r.views == maxViews {
		return nil, refuse("the SQL view "+said+" is not supported", "select from the tables themselves", "views that read each other in a circle, or too deep")
	}
	if known {
		return v, nil
	}
	r.expanded[t.Ref] = nil
	database, outputs, aggregates, sql, json := r.database, r.outputs, r.aggregates, r.sql, r.json
	r.database, r.views, r.outputs, r.aggregates = t.Ref.Database, r.views+1, 0, 0
	v, err := r.define(t)
	r.database, r.views, r.outputs, r.aggregates, r.sql, r.json = database, r.views-1, outputs, aggregates, sql, json
	if no, ok := err.(*acl.Refusal); ok {
		switch no.Code {
		case acl.CodeMissingAttribute:
			return nil, no
		case acl.CodeNotAvailable:
			return nil, acl.NotAvailable(said, fmt.Sprintf("the definition of %s: %s, %s", t.Ref, no.Public, no.Detail))
		}
		return nil, refuse("the SQL view "+said+" is not supported", "select from the tables themselves", fmt.Sprintf("the definition of %s: %s (%s)", t.Ref, no.Public, no.Detail))
	}
	if err != nil {
		return nil, err
	}
	r.expanded[t.Ref] = v
	return v, nil
}

// define reads the definition. No name of the asker reaches it.
func (r *resolver) define(t *rewrite.Table) (*view, error) {
	d, err := r.dialect.read(t.SQLView)
	if err != nil {
		return nil, err
	}
	if err := d.Single(); err != nil {
		return nil, err
	}
	if err := d.Allow(); err != nil {
		return nil, refuse("the definition does what is not allowed", "", err.Error())
	}
	r.sql, r.json = d.sql, d.json
	before := len(r.uses)
	out, err := r.query(d.query, nil, nil, nil, true)
	if err != nil {
		return nil, err
	}
	names := r.schema.Columns(t.Ref)
	if len(names) != len(out.columns) {
		return nil, refuse("the definition has other columns", "", fmt.Sprintf("%d columns, the catalog holds %d", len(out.columns), len(names)))
	}
	for i := range names {
		if strings.EqualFold(out.columns[i].name, names[i]) {
			continue
		}
		if r.outputs > 0 {
			return nil, refuse("a definition whose columns are renamed uses its own names for them", "", out.columns[i].name)
		}
		if err := rename(d.query, names); err != nil {
			return nil, err
		}
		break
	}
	v := &view{query: d.query, uses: r.uses[before:], columns: out.columns}
	for i := range names {
		v.columns[i].name = names[i]
	}
	return v, nil
}

// rename gives the columns of a query these names.
func rename(n ast.Node, names []string) error {
	switch n := n.(type) {
	case *ast.SetOprStmt:
		return rename(n.SelectList, names)
	case *ast.SetOprSelectList:
		return rename(n.Selects[0], names)
	case *ast.SelectStmt:
		if len(n.Fields.Fields) != len(names) {
			return refuse("a * whose columns are renamed", "", "star")
		}
		for i, f := range n.Fields.Fields {
			if f.WildCard != nil {
				return refuse("a * whose columns are renamed", "", "star")
			}
			f.AsName = ast.NewCIStr(names[i])
		}
		return nil
	}
	return notSupported("the definition holds a construct that is not supported", n)
}

// viewsOf returns the tables that an alias of a wrapper may mean: names may hold the point that parts them.
func viewsOf(alias string) []catalog.Ref {
	name, ok := strings.CutPrefix(alias, reserved+" ")
	if !ok {
		return nil
	}
	var out []catalog.Ref
	for i, c := range name {
		if c == '.' {
			out = append(out, catalog.TableRef(name[:i], "", name[i+1:]))
		}
	}
	return out
}

// definition checks the definition of a SQL view in a wrapper, in printed text, and returns its text. It must be the
// view's own, apart from the wrappers in it, each of which must be right.
func (r *resolver) definition(t *rewrite.Table, inner *ast.TableSource) (string, error) {
	body, err := text(inner.Source)
	known := "the definition of " + t.Ref.String() + ": " + body
	if err != nil || r.seen[known] {
		return body, err
	}
	database := r.database
	r.database, r.views = t.Ref.Database, r.views+1
	_, err = r.query(inner.Source, nil, nil, nil, false)
	r.database, r.views = database, r.views-1
	if err != nil {
		return "", err
	}
	got, err := text(inner.Source)
	if err != nil {
		return "", err
	}
	fresh := newResolver(r.dialect, r.schema)
	v, err := fresh.expand(t, t.Ref.String())
	if err != nil {
		return "", err
	}
	for _, u := range fresh.uses {
		name := u.at.Source.(*ast.TableName)
		u.at.AsName = orElse(u.at.AsName, name.Name)
		*name = ast.TableName{Schema: ast.NewCIStr(u.table.Ref.Database), Name: ast.NewCIStr(u.table.Ref.Table), PartitionNames: name.PartitionNames}
	}
	want, err := v.text()
	if err != nil {
		return "", err
	}
	if got != want {
		return "", fmt.Errorf("mysql: the definition of %s is not the catalog's", t.Ref)
	}
	r.seen[known] = true
	return body, nil
}

func orElse(a, b ast.CIStr) ast.CIStr {
	if a.O != "" {
		return a
	}
	return b
}
