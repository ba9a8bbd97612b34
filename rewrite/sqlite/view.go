package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/parser"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// A SQL view is written out where it is read, as SQLite itself does, so that its tables stand in the asker's wrappers:
//
//	(WITH `view main.v`(a, b) AS (the view's SELECT) SELECT a FROM `view main.v` AS v WHERE the view's own filter)
//
// The name of the CTE says which view it must be; a statement of the asker's cannot use such a name.
const viewMark = "view "

// The limits on SQL views: of one in another, and of all that a statement comes to, with the bytes of their definitions.
const (
	maxViewDepth = 32
	maxViews     = 1000
	maxViewBytes = 1 << 20
)

// defined reads the statement that defines a SQL view: all of CREATE VIEW, or its SELECT alone.
func defined(sql string) (*ast.SelectStmt, []*ast.Ident, error) {
	statement, err := parser.ParseStatement(sql)
	if err != nil {
		return nil, nil, err
	}
	if tooDeep(statement) {
		return nil, nil, errors.New("it is nested too deeply")
	}
	switch s := statement.(type) {
	case *ast.SelectStmt:
		return s, nil, nil
	case *ast.CreateViewStmt:
		var names []*ast.Ident
		for _, c := range s.Columns {
			names = append(names, c.Name)
		}
		return s.Select, names, nil
	}
	return nil, nil, fmt.Errorf("%T defines no view", statement)
}

// view resolves the body of a SQL view in a scope of its own and writes it in place of the reference. What the asker may
// not know of in it makes the view as absent as that.
func (r *resolver) view(ref *ast.TableRef, t *rewrite.Table, s *scope) *source {
	said := ast.String(ref.Name)
	unsupported := func(detail string) *source {
		no := notSupported(ref, said+" is a SQL view whose definition is not supported", "query the tables that it is made of")
		no.Detail += ": " + detail
		r.refuse(no)
		return nil
	}
	r.expanded++
	r.viewBytes += len(t.SQLView)
	switch {
	case ref.IndexedBy != nil:
		r.refuse(invalid("no such index: " + ref.IndexedBy.Raw))
		return nil
	case r.expanded > maxViews || r.viewBytes > maxViewBytes:
		r.refuse(tooLarge(fmt.Sprintf("its SQL views come to more than %d, or to more than %d bytes", maxViews, maxViewBytes)))
		return nil
	case len(r.views) >= maxViewDepth:
		return unsupported("SQL views in SQL views without end")
	case slices.ContainsFunc(r.views, func(o *rewrite.Table) bool { return o.Ref == t.Ref }):
		r.refuse(acl.NotAvailable(said, "a SQL view of itself: "+t.Ref.String()))
		return nil
	}
	definition, names, err := defined(t.SQLView)
	if err != nil {
		return unsupported(err.Error())
	}
	sql, name, around, views := r.sql, r.said, r.trace, r.views
	if len(r.views) == 0 {
		r.at, r.said = ref.Name.Pos(), said
	}
	r.sql, r.trace, r.views = t.SQLView, trace{}, append(slices.Clip(views), t)
	s.outer.encloses(nil)
	within := r.body
	r.body = &body{from: len(r.tables)}
	r.inCTE++
	columns := distinct(r.query(definition, nil, nil))
	r.inCTE--
	r.body.to = len(r.tables)
	r.sql, r.said, r.trace, r.views, r.body = sql, name, around, views, within
	if r.err == nil {
		r.err = allowed(definition)
	}
	if r.err == nil && names != nil && len(names) != len(columns) {
		r.err = invalid(fmt.Sprintf("it names %d columns and has %d", len(names), len(columns)))
	}
	if r.err != nil {
		r.err = viewRefusal(r.err, said, t)
		return nil
	}

	place := &boundTable{ref: ref, table: t, names: make([]string, len(columns)), body: r.body}
	r.tables = append(r.tables, place)
	mark := viewMark + schemaName(t.Ref.Schema) + "." + t.Ref.Table
	cte := &ast.CTE{Name: ident(mark), Select: definition}
	src := &source{name: ref.Name.Name.Name, schema: schemaName(t.Ref.Schema), table: t}
	for i, n := range names {
		columns[i] = &column{name: n.Name, parts: []*column{columns[i]}}
	}
	for i, c := range distinct(columns) {
		place.names[i] = c.name
		cte.Columns = append(cte.Columns, ident(c.name))
		for j := range t.Columns {
			if stored := &t.Columns[j]; same(stored.Name, c.name) {
				src.columns = append(src.columns, &column{name: stored.Name, table: t, stored: stored, parts: []*column{c}})
			}
		}
	}
	// The view's own policy may read a column that its body has for others only.
	own := subject{schema: r.schema, table: t, names: place.names}
	if err := own.govern(&ast.SelectQuery{}, false); err != nil {
		r.refuse(acl.NotAvailable(said, err.Error()))
		return nil
	}
	if ref.Alias == nil {
		ref.Alias, ref.HasAs = ident(ref.Name.Name.Name), true
	}
	// The columns, masks and filter of the view itself come with the other wrappers.
	core := &ast.SelectQuery{From: []*ast.TableRef{{Name: &ast.QualifiedName{Name: ident(mark)}, Alias: ident(t.Ref.Table), HasAs: true}}}
	ref.Name, ref.NotIndexed = nil, false
	ref.Select = &ast.SelectStmt{With: &ast.With{CTEs: []*ast.CTE{cte}}, Cores: []ast.SelectCore{core}}
	return src
}

// viewRefusal turns what is wrong with a SQL view's body into words that speak of the view only.
func viewRefusal(err error, said string, t *rewrite.Table) error {
	no, ok := err.(*acl.Refusal)
	if !ok {
		return err
	}
	detail := fmt.Sprintf("SQL view %s: %s (%s)", t.Ref, no.Public, no.Detail)
	switch no.Code {
	case acl.CodeNotSupported:
		return &acl.Refusal{
			Code: no.Code, Public: said + " is a SQL view whose definition is not supported", Hint: "query the tables that it is made of", Detail: detail,
		}
	case acl.CodeMaskUnsupported:
		return &acl.Refusal{
			Code: no.Code, Public: said + " is a SQL view of a column that is masked in a way that SQLite has no function for",
			Hint: "query the tables that it is made of", Detail: detail,
		}
	case acl.CodeNotAvailable, acl.CodeAmbiguous, acl.CodeUnparsable: // it fails on a database without what is hidden
		return acl.NotAvailable(said, detail)
	}
	return err
}

// marked returns the SQL view that the name of a CTE marks.
func marked(s *rewrite.Schema, name string) (*rewrite.Table, bool, error) {
	name, ok := strings.CutPrefix(name, viewMark)
	if !ok {
		return nil, false, nil
	}
	schema, table, ok := strings.Cut(name, ".")
	for ok { // schemas may have dots in their names
		if schema == "main" {
			schema = ""
		}
		t, found, err := s.Table(catalog.TableRef(s.Database().Name, schema, table))
		if err != nil || found && t.SQLView != "" {
			return t, err == nil, err
		}
		var more string
		more, table, ok = strings.Cut(table, ".")
		schema += "." + more
	}
	return nil, false, nil
}
