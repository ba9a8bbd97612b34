package rewrite

import (
	"errors"
	"fmt"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// Derivations finds what the columns of a catalog's SQL views are made of, by their dialects' guards and with every right.
// Views that cannot be read are listed; of their columns nothing is known.
func Derivations(s *catalog.Snapshot, guards []*Guard) (from map[catalog.Ref][]catalog.Ref, unread []acl.Finding) {
	from = map[catalog.Ref][]catalog.Ref{}
	byDialect := map[catalog.Dialect]*Guard{}
	for _, g := range guards {
		byDialect[g.Dialect()] = g
	}
	everything := acl.Everything(s)
	for _, o := range s.Objects(catalog.KindTable) {
		if o.Table.SQLView == "" {
			continue
		}
		made, err := columnsOf(everything, o.Ref, byDialect)
		if err == nil && len(made) != s.ColumnIDs(o.ID).Len() {
			err = fmt.Errorf("it has %d columns by its definition and %d in the catalog", len(made), s.ColumnIDs(o.ID).Len())
		}
		if err != nil {
			unread = append(unread, acl.Finding{Rule: o.Ref.String(), Message: "its columns inherit no tags, since the SQL view cannot be read: " + reason(err)})
			continue
		}
		for i, c := range s.Columns(o.ID) {
			from[c.Ref] = made[i].From
		}
	}
	return from, unread
}

// columnsOf returns the lineage of a view's columns, down to base tables.
func columnsOf(v acl.View, view catalog.Ref, guards map[catalog.Dialect]*Guard) ([]Output, error) {
	schema, err := NewSchema(v, view.Database)
	if err != nil {
		return nil, err
	}
	g := guards[schema.Dialect()]
	if g == nil {
		return nil, fmt.Errorf("there is no guard for %s", schema.Dialect())
	}
	name, err := templates.QualifiedName(schema.Dialect(), view)
	if err != nil {
		return nil, err
	}
	st, err := g.Rewrite("SELECT * FROM "+name, schema)
	return st.Output(), err
}

// reason is an error in full, for whoever keeps the catalog.
func reason(err error) string {
	var no *acl.Refusal
	if errors.As(err, &no) && no.Detail != "" {
		return fmt.Sprintf("%s: %s", no.Code, no.Detail)
	}
	return err.Error()
}
