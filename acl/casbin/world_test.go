package casbin_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

var dialects = map[string]catalog.Dialect{"Liteq": catalog.SQLite, "Myq": catalog.MySQL, "Pgq": catalog.Postgres}

// drawCatalog makes a random catalog in which each name is part of no other text, so that a name that must not appear
// can be searched for.
func drawCatalog(t *rapid.T) *catalog.Snapshot {
	var databases []catalog.Database
	for name, d := range dialects {
		databases = append(databases, catalog.Database{Name: name, Dialect: d})
	}
	var objects []catalog.Object
	var columns []catalog.Ref
	byTable := map[catalog.Ref][]catalog.Ref{}
	for i := range rapid.IntRange(1, 4).Draw(t, "tables") {
		r := rapid.SampledFrom([]catalog.Ref{
			catalog.TableRef("Liteq", "", ""), catalog.TableRef("Myq", "", ""),
			catalog.TableRef("Pgq", "Saleq", ""), catalog.TableRef("Pgq", "Crmq", "")}).Draw(t, "place")
		r.Table = rapid.SampledFrom([]string{"Tab%dq", "odd %d.q", "st*r%dq"}).Draw(t, "form")
		r.Table = fmt.Sprintf(r.Table, i)
		rows := int64(7)
		words := func() []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(said), 0, 2, rapid.ID).Draw(t, "tags")
		}
		table := &catalog.Table{Rows: &rows, SQLView: rapid.SampledFrom([]string{"", "SELECT 1"}).Draw(t, "sql view")}
		for j := range rapid.IntRange(1, 3).Draw(t, "columns") {
			c := catalog.ColumnRef(r.Database, r.Schema, r.Table, fmt.Sprintf("Col%dx%dq", i, j))
			if j == 0 && rapid.Bool().Draw(t, "keyed") {
				table.PrimaryKey = []string{c.Column}
			}
			byTable[r] = append(byTable[r], c)
			columns = append(columns, c)
			share, distinct := 0.5, int64(3)
			objects = append(objects, catalog.Object{Ref: c, Tags: words(), Owner: oneOrNone.Draw(t, "owner"), Domain: oneOrNone.Draw(t, "domain"), Column: &catalog.Column{
				Position: j, Samples: []string{fmt.Sprintf("val%dx%dq", i, j)}, Dictionary: []string{fmt.Sprintf("dic%dx%dq", i, j)}, NullShare: &share, Distinct: &distinct}})
		}
		if rapid.Bool().Draw(t, "key") {
			to := rapid.SampledFrom(columns).Draw(t, "to")
			from := rapid.SampledFrom(byTable[r]).Draw(t, "from")
			table.ForeignKeys = []catalog.ForeignKey{{Columns: []string{from.Column}, To: to.TableRef(), ToColumns: []string{to.Column}}}
		}
		objects = append(objects, catalog.Object{Ref: r, Tags: words(), Owner: oneOrNone.Draw(t, "owner"), Domain: oneOrNone.Draw(t, "domain"), Table: table})
	}
	column := rapid.SampledFrom(columns)
	for i := range rapid.IntRange(0, 3).Draw(t, "named") {
		c, d := column.Draw(t, "c"), column.Draw(t, "d")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			objects = append(objects, catalog.Object{Ref: catalog.MetricRef(fmt.Sprintf("Met%dq", i)), Tags: []string{oneOrNone.Draw(t, "tag")}, Metric: &catalog.Metric{
				Formula: "SUM(" + c.Column + ")", Sources: []catalog.Ref{c.TableRef()}, Dimensions: []catalog.Ref{d}}})
		case 1:
			objects = append(objects, catalog.Object{Ref: catalog.RelationshipRef(fmt.Sprintf("Rel%dq", i)), Relationship: &catalog.Relationship{
				From: []catalog.Ref{c}, To: []catalog.Ref{d}, Type: catalog.DocumentedRelationship}})
		case 2:
			objects = append(objects, catalog.Object{Ref: catalog.QueryRef(fmt.Sprintf("Que%dq", i)), Query: &catalog.Query{
				Question: fmt.Sprintf("ask%dq", i), Tables: []catalog.Ref{c.TableRef()}, Columns: []catalog.Ref{c}, Filters: []catalog.Ref{d}}})
		}
	}
	s, err := catalog.Build(databases, objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// said is what objects of a drawn catalog say of themselves. None of it is a name.
var said = []string{"pii", "pay"}

var oneOrNone = rapid.SampledFrom(append([]string{""}, said...))

// drawPattern makes a pattern from the name of an object, so that it has something to cover more often than not.
func drawPattern(t *rapid.T, s *catalog.Snapshot) string {
	if rapid.IntRange(0, 5).Draw(t, "by attribute") == 0 {
		return rapid.SampledFrom([]string{"tag:pii", "tag:p*", "owner:pay", "domain:pii", "domain:*", "kind:column", "kind:metric", "kind:table"}).Draw(t, "attribute")
	}
	o := s.All()[rapid.IntRange(0, s.Len()-1).Draw(t, "object")]
	path := o.Ref.Path()
	if o.Table == nil && o.Column == nil {
		return o.Ref.Kind.String() + ":" + rapid.SampledFrom([]string{path[0], "*", path[0][:3] + "*", "nothing"}).Draw(t, "name")
	}
	if rapid.IntRange(0, 9).Draw(t, "all") == 0 {
		return "*"
	}
	path = path[:rapid.IntRange(1, len(path)).Draw(t, "depth")]
	for i, seg := range path {
		quoted := catalog.JoinPath([]string{seg})
		star := strings.ReplaceAll(quoted[:min(len(quoted), 3)], `"`, "") + "*"
		path[i] = rapid.SampledFrom([]string{quoted, quoted, quoted, strings.ToLower(quoted), "*", star, `"` + seg + `"`}).Draw(t, "segment")
	}
	return strings.Join(path, ".")
}

// drawPolicy writes a random policy for the principals p0 to p2.
func drawPolicy(t *rapid.T, s *catalog.Snapshot) string {
	var b strings.Builder
	roles := []string{"r0", "r1", "r2", "p1"} // one is named like a principal
	b.WriteString("version: 1\nroles:\n")
	for i, r := range roles {
		fmt.Fprintf(&b, "  %s: {inherits: [%s]}\n", r, strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(append(roles[i+1:], "last")), 0, 2, rapid.ID).Draw(t, "inherits"), ", "))
	}
	b.WriteString("  last:\nprincipals:\n")
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(roles), 1, 2, rapid.ID)
	for _, p := range principals {
		fmt.Fprintf(&b, "  %s: {%sroles: [%s]}\n", p, rapid.SampledFrom([]string{"", "tenant: t1, ", "tenant: t2, "}).Draw(t, "tenant"), strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(roles), 0, 2, rapid.ID).Draw(t, "roles"), ", "))
	}
	patterns := func() string {
		var out []string
		for range rapid.IntRange(1, 2).Draw(t, "patterns") {
			out = append(out, fmt.Sprintf("%q", drawPattern(t, s)))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	b.WriteString("grants:\n")
	for range rapid.IntRange(0, 6).Draw(t, "grants") {
		fmt.Fprintf(&b, "  - {role: %s", rapid.SampledFrom(append(slices.Clone(roles), "last")).Draw(t, "role"))
		b.WriteString(rapid.SampledFrom([]string{"", "", "", ", tenant: t1", ", tenant: t2"}).Draw(t, "tenant"))
		b.WriteString(rapid.SampledFrom([]string{"", "", "", "", ", from: '2026-06-15'", ", from: '2026-06-15T12:00:01Z'", ", until: '2026-06-15T12:00:00Z'", ", from: '2026-01-01', until: '2027-01-01T00:00:00+02:00'"}).Draw(t, "window"))
		form := rapid.IntRange(0, 3).Draw(t, "form")
		if form != 0 {
			fmt.Fprintf(&b, ", allow: %s", patterns())
		}
		if form == 0 || form == 3 {
			fmt.Fprintf(&b, ", deny: %s", patterns())
		}
		if form > 1 {
			var actions []string
			for _, a := range rapid.SliceOfNDistinct(rapid.SampledFrom(append(acl.Actions[:], acl.ActionView, acl.ActionQuery, acl.ActionQuery)), 1, 3, rapid.ID).Draw(t, "actions") {
				actions = append(actions, string(a))
			}
			fmt.Fprintf(&b, ", actions: [%s]", strings.Join(actions, ", "))
		}
		b.WriteString("}\n")
	}
	b.WriteString("row_filters:\n")
	for range rapid.IntRange(0, 1).Draw(t, "filters") {
		fmt.Fprintf(&b, "  - {table: %q, roles: [%s], mode: %s, using: x = 1}\n", drawPattern(t, s), strings.Join(some.Draw(t, "roles"), ", "),
			rapid.SampledFrom([]string{"permissive", "restrictive"}).Draw(t, "mode"))
	}
	b.WriteString("masks:\n")
	for range rapid.IntRange(0, 1).Draw(t, "masks") {
		fmt.Fprintf(&b, "  - {column: %q, roles: [%s], with: %s}\n", drawPattern(t, s), strings.Join(some.Draw(t, "roles"), ", "),
			rapid.SampledFrom([]string{"null", "hash", "{constant: 1}"}).Draw(t, "with"))
	}
	return b.String()
}

var principals = []string{"p0", "p1", "p2"}
