//go:build bigquery

package bigquery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/rewrite"
)

// Wrap puts each base table behind its wrapper, seen whole or not: a table may have got columns since the catalog was
// read. The wrapper is put into the text where the name stood, and the text is parsed and printed anew.
func (t *tree) Wrap(*rewrite.Schema) error {
	for _, at := range t.bound {
		w, err := t.binder.wrapper(at.table)
		if err != nil {
			return err
		}
		p := at.at.child("PathExpression")
		t.wrapped = append(t.wrapped, edit{p.start, p.end, w.text(t.barred) + implicitAlias(at.at)})
	}
	return nil
}

// wrapper is the derived table that stands for a table: its visible columns, masked, of the rows that pass the filter.
type wrapper struct {
	table   *rewrite.Table
	columns []wrapped
	filter  string // empty if the table is not filtered
	flag    string // the name of what the filter says of a row, in a wrapper that shows NULL for hidden ones
}

// wrapped is a column in a wrapper.
type wrapped struct {
	column *rewrite.Column
	sql    string // what it reads as; empty for a hash, which BigQuery cannot mask by: see masked
	typ    string
}

// wrapper makes the wrapper of a table once.
func (b *binder) wrapper(t *rewrite.Table) (*wrapper, error) {
	if i := slices.IndexFunc(b.wrappers, func(w *wrapper) bool { return w.table == t }); i >= 0 {
		return b.wrappers[i], nil
	}
	w := &wrapper{table: t, flag: "shown"}
	for i := range t.Columns {
		c := &t.Columns[i]
		sql, typ, err := b.masked(t, c)
		if err != nil {
			return nil, err
		}
		w.columns = append(w.columns, wrapped{c, sql, typ})
	}
	for slices.ContainsFunc(t.Columns, func(c rewrite.Column) bool { return strings.EqualFold(c.Name, w.flag) }) {
		w.flag += "_"
	}
	if t.Protected {
		var err error
		if w.filter, err = b.filter(t); err != nil {
			return nil, err
		}
	}
	b.wrappers = append(b.wrappers, w)
	return w, nil
}

// shapes are the columns as a statement sees them, with types that belong to n. What cannot be masked is there too, so that
// naming it is told apart from naming nothing.
func (w *wrapper) shapes(n *names) ([]shape, error) {
	var out []shape
	for _, c := range w.columns {
		typ, err := n.typeOf(c.typ)
		if err != nil {
			return nil, fmt.Errorf("bigquery: %s: %w", c.column.Ref, err)
		}
		out = append(out, shape{c.column, typ})
	}
	return out, nil
}

// text writes the wrapper. Barred, it shows NULL for what a hidden row holds, whatever the engine evaluates before it has
// dropped the row.
func (w *wrapper) text(barred bool) string {
	from := quotePath(fullPath(w.table.Ref))
	var inner, outer []string
	for _, c := range w.columns {
		name := quote(c.column.Name)
		switch c.sql {
		case "":
			continue
		case name:
			inner = append(inner, name)
		default:
			inner = append(inner, c.sql+" AS "+name)
		}
		outer = append(outer, "IF("+quote(w.flag)+", "+name+", NULL) AS "+name)
	}
	if inner == nil { // rows can still be counted
		inner, outer = []string{"NULL AS `none`"}, []string{"NULL AS `none`"}
	}
	if w.filter == "" {
		return "(SELECT " + strings.Join(inner, ", ") + " FROM " + from + ")"
	}
	if !barred {
		return "(SELECT " + strings.Join(inner, ", ") + " FROM " + from + " WHERE " + w.filter + ")"
	}
	inner = append(inner, w.filter+" AS "+quote(w.flag))
	return "(SELECT " + strings.Join(outer, ", ") + " FROM (SELECT " + strings.Join(inner, ", ") + " FROM " + from + ") WHERE " + quote(w.flag) + ")"
}

// filter is (one of the permissive conditions) AND each restrictive one; without a permissive one it is false.
func (b *binder) filter(t *rewrite.Table) (string, error) {
	any, err := b.conditions(t, t.Permissive)
	if err != nil {
		return "", err
	}
	if any == nil {
		return "FALSE", nil
	}
	all, err := b.conditions(t, t.Restrictive)
	if err != nil {
		return "", err
	}
	first := strings.Join(any, " OR ")
	if len(any) > 1 {
		first = "(" + first + ")"
	}
	return strings.Join(append([]string{first}, all...), " AND "), nil
}

func (b *binder) conditions(t *rewrite.Table, list []rewrite.Condition) ([]string, error) {
	var out []string
	for _, c := range list {
		sql, err := b.condition(t, c)
		if err != nil {
			return nil, err
		}
		if typ, ok := b.typeOf(t, sql); ok && typ != "BOOL" {
			return nil, fmt.Errorf("bigquery: policy %s: the condition is a %s, not a BOOL", c.Rule, typ)
		}
		out = append(out, "("+sql+")")
	}
	return out, nil
}

// Governed checks a tree in which tables should stand in their wrappers. It goes by the text alone: each wrapper must be
// the one that is generated anew for the table in it, and with the wrappers put back to names of tables, the rest must
// bind over a catalog that holds these tables under these names and nothing else. If the tree is known that this one was
// printed from, the rest must also mean what that one means.
func (t *tree) Governed(s *rewrite.Schema) error {
	b := binder{schema: s, engine: t.engine}
	n, err := t.engine.names()
	if err != nil {
		return err
	}
	var edits []edit
	var guises []guise
	var fault error
	t.query.walk(func(at *node) bool {
		if fault != nil || at.kind != "TableSubquery" {
			return fault == nil
		}
		table, as, err := b.recognise(at)
		if err != nil || table == nil {
			fault = err
			return true
		}
		path := fullPath(table.Ref)
		if fault = b.put(n, path, table); fault != nil {
			return false
		}
		// The alias of a derived table is a part of it.
		alias := ""
		if a := at.child("Alias"); a != nil {
			alias = " AS " + quote(a.children[0].name)
		}
		edits = append(edits, edit{at.start, at.end, quotePath(path) + alias})
		guises = append(guises, as)
		return false
	})
	if fault != nil {
		return fault
	}
	plain := apply(t.sql, edits)
	rest, err := statements(plain)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("it is not one statement")
	}
	if err := allowed(rest[0]); err != nil {
		return err
	}
	r, err := n.analyze(plain)
	if err != nil {
		return cmp.Or(b.withheld, err)
	}
	defer r.done()
	reader, err := readStatement(r, rest[0])
	if err != nil {
		return err
	}
	if len(reader.scans) != len(edits) {
		return fmt.Errorf("%d tables are read, and %d wrappers stand there", len(reader.scans), len(edits))
	}
	if reader.risky != nil {
		return reader.risky
	}
	for _, as := range guises {
		if as != either && (as == barred) != reader.barred {
			return errors.New("a wrapper shows hidden rows as NULL or does not, against what the statement demands")
		}
	}
	if t.printed == nil {
		return nil
	}
	before, err := t.printed.capMeaning()
	if err != nil {
		return err
	}
	if before != r.meaning {
		return errors.New("it means something else than the statement that was printed")
	}
	return nil
}

// capMeaning is what the statement means with its cap and without its wrappers.
func (t *tree) capMeaning() (string, error) {
	if t.capped == nil {
		return t.meaning, nil
	}
	n, err := t.engine.names()
	if err != nil {
		return "", err
	}
	for _, at := range t.bound {
		if err := t.binder.put(n, at.at.child("PathExpression").path(), at.table); err != nil {
			return "", err
		}
	}
	r, err := n.analyze(apply(t.sql, t.capped))
	if err != nil {
		return "", err
	}
	defer r.done()
	return r.meaning, nil
}

// guise is how a wrapper was recognised: merged, showing NULL for hidden rows, or as one of a table that has no row
// filter and looks the same either way.
type guise uint8

const (
	either guise = iota
	merged
	barred
)

// recognise returns the table whose wrapper a derived table exactly is; nil if it is none.
func (b *binder) recognise(at *node) (*rewrite.Table, guise, error) {
	var path []string
	at.walk(func(n *node) bool {
		if path == nil && n.kind == "FromClause" {
			if p := n.child("TablePathExpression"); p != nil && p.child("PathExpression") != nil {
				path = p.child("PathExpression").path()
			}
		}
		return path == nil
	})
	if len(path) != 3 {
		return nil, 0, nil
	}
	ref, _ := b.ref(path)
	t, ok, err := b.schema.Table(ref)
	if err != nil || !ok || t.SQLView != "" || t.Part {
		return nil, 0, err
	}
	w, err := b.wrapper(t)
	if err != nil {
		return nil, 0, err
	}
	for _, as := range []guise{merged, barred} {
		made, err := statements("SELECT 1 FROM " + w.text(as == barred))
		if err != nil {
			return nil, 0, err
		}
		var derived *node
		made[0].walk(func(n *node) bool {
			if derived == nil && n.kind == "TableSubquery" {
				derived = n
			}
			return derived == nil
		})
		if derived != nil && equal(derived.children[0], at.children[0]) {
			if w.filter == "" {
				as = either
			}
			return t, as, nil
		}
	}
	return nil, 0, nil
}
