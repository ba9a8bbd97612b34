package rewrite

import (
	"fmt"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// Vet tries the row filters and masks that a view puts on its tables, one table at a time, with the guards of their
// dialects. It is for whoever keeps the policy: messages name what the policy names.
func Vet(v acl.View, guards []*Guard) []acl.Finding {
	s := v.Snapshot()
	if s == nil {
		return nil
	}
	byDialect := map[catalog.Dialect]*Guard{}
	for _, g := range guards {
		byDialect[g.Dialect()] = g
	}
	var out []acl.Finding
	for _, o := range s.Objects(catalog.KindTable) {
		rules := rulesOn(v, s, o.ID)
		if len(rules) == 0 || !v.Queryable(o.ID) {
			continue
		}
		if message := vet(v, o.Ref, byDialect); message != "" {
			out = append(out, acl.Finding{Rule: strings.Join(rules, ", "), Message: fmt.Sprintf("on %s for %s: %s", o.Ref, v.Principal().Name, message)})
		}
	}
	return out
}

func rulesOn(v acl.View, s *catalog.Snapshot, table uint32) []string {
	var rules []string
	if f, protected := v.Filter(table); protected {
		for _, list := range [][]acl.Predicate{f.Permissive, f.Restrictive} {
			for _, p := range list {
				rules = append(rules, p.Rule)
			}
		}
	}
	for _, c := range s.Columns(table) {
		if m, masked := v.Mask(c.ID); masked && v.Queryable(c.ID) {
			rules = append(rules, m.Rule)
		}
	}
	return rules
}

func vet(v acl.View, table catalog.Ref, guards map[catalog.Dialect]*Guard) string {
	schema, err := NewSchema(v, table.Database)
	if err != nil {
		return err.Error()
	}
	g := guards[schema.Dialect()]
	if g == nil {
		return fmt.Sprintf("there is no guard for %s", schema.Dialect())
	}
	name, err := templates.QualifiedName(schema.Dialect(), table)
	if err != nil {
		return err.Error()
	}
	_, err = g.Rewrite("SELECT * FROM "+name, schema)
	if err != nil {
		return reason(err)
	}
	return ""
}
