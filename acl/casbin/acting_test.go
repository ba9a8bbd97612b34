package casbin_test

import (
	"fmt"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// TestRowsAndMasksOfBothHoldWhenOneActsForTheOther looks at what of two row filters and two masks is in force, and whose
// attributes fill it.
func TestRowsAndMasksOfBothHoldWhenOneActsForTheOther(t *testing.T) {
	t.Parallel()
	s := shop(t)
	const file = `version: 1
principals:
  tool: {roles: [bi], attributes: {region: EU}, acts_for: ["*"]}
  alice: {roles: [analyst], attributes: {region: DE}}
grants:
  - {role: bi, allow: [shop]}
  - {role: analyst, allow: [shop]}
row_filters:
`
	orders, _ := s.ID(catalog.TableRef("shop", "sales", "orders"))
	email, _ := s.ID(catalog.ColumnRef("shop", "crm", "customers", "email"))
	filter := func(role, using, mode string) string {
		return fmt.Sprintf("  - {table: shop.sales.orders, roles: [%s], using: %q, mode: %s}\n", role, using, mode)
	}
	const mine, all = "region = {{ principal.region }}", "true"
	for _, c := range []struct{ name, filters, want string }{
		{"neither is filtered", "", "<nil>"},
		{"what is nobody's shows nothing", filter("bi", mine, "permissive"), "&{[] [region = 'EU'] true}"},
		{"each to their own", filter("bi", mine, "permissive") + filter("analyst", mine, "permissive"), "&{[region = 'DE'] [region = 'EU'] false}"},
		{"one of several of the account", filter("bi", "a -- so", "permissive") + filter("bi", "b", "permissive") + filter("analyst", mine, "permissive"),
			"&{[region = 'DE'] [(a -- so\n) OR (b\n)] false}"},
		{"restrictions add up", filter("bi", "a", "permissive") + filter("bi", mine, "restrictive") + filter("analyst", mine, "permissive") + filter("analyst", "c", "restrictive"),
			"&{[region = 'DE'] [c region = 'EU' a] false}"},
		{"the person sees all", filter("bi", mine, "permissive") + filter("analyst", all, "permissive"), "&{[region = 'EU'] [] false}"},
		{"the account sees all", filter("bi", all, "permissive") + filter("analyst", mine, "permissive"), "&{[region = 'DE'] [] false}"},
	} {
		e, _ := engine(t, s, file+c.filters+"masks: [{column: shop.crm.customers.email, roles: [bi], with: partial}, {column: shop.crm.customers.email, roles: [analyst], with: null}]\n")
		v, err := e.ViewFor("tool", "alice")
		if err != nil {
			t.Fatal(err)
		}
		if got := rows(v.Access(orders).Rows); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if m, _ := v.Mask(email); m.Kind != acl.MaskNull {
			t.Errorf("%s: the mask is %s, want null", c.name, m.Kind)
		}
		if v.Via() != "tool" || v.Principal().Name != "alice" {
			t.Errorf("%s: the view is of %s through %q", c.name, v.Principal().Name, v.Via())
		}
	}
}

func TestAValueThatTheTwoSeeMaskedInOtherWaysReadsAsNull(t *testing.T) {
	t.Parallel()
	s := shop(t)
	email, _ := s.ID(catalog.ColumnRef("shop", "crm", "customers", "email"))
	for _, c := range []struct {
		account, person string
		want            acl.MaskKind
	}{
		{"partial", "partial", acl.MaskPartial},
		{"hash", "hash", acl.MaskHash},
		{"null", "partial", acl.MaskNull},
		{"partial", "hash", acl.MaskNull},
		{"{constant: x}", "{constant: x}", acl.MaskConstant},
		{"{constant: x}", "{constant: y}", acl.MaskNull},
		{"{constant: x}", "partial", acl.MaskNull},
		{"{expression: upper(email)}", "{expression: upper(email)}", acl.MaskNull}, // its places are filled by the attributes of two
	} {
		e, _ := engine(t, s, fmt.Sprintf(`version: 1
principals: {tool: {roles: [bi], acts_for: ["*"]}, alice: {roles: [analyst]}}
grants: [{role: bi, allow: [shop]}, {role: analyst, allow: [shop]}]
masks:
  - {column: shop.crm.customers.email, roles: [bi], with: %s}
  - {column: shop.crm.customers.email, roles: [analyst], with: %s}
`, c.account, c.person))
		v, err := e.ViewFor("tool", "alice")
		if err != nil {
			t.Fatal(err)
		}
		if m, _ := v.Mask(email); m.Kind != c.want {
			t.Errorf("%s and %s make %s, want %s", c.account, c.person, m.Kind, c.want)
		}
	}
}

func rows(r *acl.Rows) string {
	if r == nil {
		return "<nil>"
	}
	return fmt.Sprintf("&{%v %v %v}", r.Any, r.All, r.None)
}
