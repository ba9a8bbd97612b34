package postgres

import (
	"fmt"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// defaultSchema is where names without a schema are looked for if the catalog does not say.
const defaultSchema = "public"

// askerTables knows the tables that the asker may query, with the columns that they may query.
func askerTables(s *rewrite.Schema) tables {
	return func(u *use, name string) (*item, error) {
		t, ok, err := s.Table(u.ref)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, acl.NotAvailable(name, s.Absence(u.ref))
		case t.Part:
			return nil, acl.NotAvailable(name, "a part of a governed table: "+u.ref.String())
		}
		u.table, u.ref = t, t.Ref
		return tableItem(t), nil
	}
}

// tableItem is a table as the asker sees it.
func tableItem(t *rewrite.Table) *item {
	it := &item{columns: make([]column, len(t.Columns))}
	made := make([]source, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		made[i].ref = &c.Ref
		it.columns[i] = column{name: c.Name, ref: &c.Ref, made: &made[i]}
	}
	return it
}

// policyTables knows every table of the catalog, for the policy's own SQL, which reads raw values.
func policyTables(s *rewrite.Schema) tables {
	return func(u *use, name string) (*item, error) {
		ref, ok := s.Exists(u.ref)
		if !ok {
			return nil, fmt.Errorf("the catalog holds no table %s", u.ref)
		}
		u.ref = ref
		return rawItem(s, u), nil
	}
}

// rawItem is a table as the policy sees it: every column there is, by name.
func rawItem(s *rewrite.Schema, u *use) *item {
	return &item{
		columns: []column{{unknown: true}},
		has: func(name string) bool {
			_, ok := s.Exists(catalog.ColumnRef(u.ref.Database, u.ref.Schema, u.ref.Table, name))
			return ok
		},
	}
}
