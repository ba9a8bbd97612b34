package acl_test

import (
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
)

func TestACasbinPolicyInCSVReadsAsAPolicyFile(t *testing.T) {
	t.Parallel()
	p, err := acl.ParseCSV("policy.csv", []byte(`# who may what
p, analyst, shop.sales, read
p, analyst, shop.sales.orders.margin, query, deny
p, "auditor", *, view, allow
p, bob, metric:revenue, view
g, alice, senior
g, senior, analyst
g, bob, auditor
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Principals(), " "); got != "alice bob" {
		t.Errorf("the principals are %s", got)
	}
	for name, want := range map[string]string{"alice": "analyst senior", "bob": "auditor user:bob"} {
		who, err := p.Principal(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Roles(who), " "); got != want {
			t.Errorf("%s has the roles %s, want %s", name, got, want)
		}
	}
	if len(p.Grants) != 4 || len(p.Grants[0].Actions) != 2 || len(p.Grants[1].Deny) != 1 {
		t.Errorf("the grants are %+v", p.Grants)
	}
}

// TestFaultsThatCasbinTakesAreErrors: a row too short makes every later Enforce fail, and a misspelt effect is ignored.
func TestFaultsThatCasbinTakesAreErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"p, alice, shop":                  "a p line is p, SUBJECT, PATTERN, ACTION",
		"p, alice, shop, query, Deny":     `the effect is "Deny"; write allow or deny`,
		"p, alice, shop, query, allow, x": "a p line is",
		"p, alice, shop, write":           `action "write" is not known`,
		"p, , shop, query":                "a field is empty",
		"g, alice":                        "a g line is",
		"g, alice, admin, domain1":        "domains are written as tenants",
		"g2, alice, admin":                "a line begins with p or g",
		`p, "alice, shop, query`:          "policy.csv",
		"p, alice, shop..x, query":        "policy.csv:2: ",
		"g, a, b\ng, b, a":                "inherits itself",
	} {
		if _, err := acl.ParseCSV("policy.csv", []byte("p, bob, shop, query\n"+line+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestAPrincipalNamedLikeARoleIsNobody: in Casbin a user id equal to a role's name has the role.
func TestAPrincipalNamedLikeARoleIsNobody(t *testing.T) {
	t.Parallel()
	p, err := acl.ParseCSV("policy.csv", []byte("p, admin, *, *\ng, root, admin\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Principal("admin"); err == nil {
		t.Error("admin, a role, is a principal")
	}
}
