package acl_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/schemagate/schemagate/acl"
)

// handbook is the policy that the documentation shows.
const handbook = `version: 1
principals: {alice: {roles: [emea], attributes: {region: EMEA}}}
roles: {emea: {inherits: [analyst]}}
grants:
  - {role: analyst, allow: ["shop.sales.*"], actions: [view, query]}
  - {role: analyst, deny: ["shop.crm.customers.ssn"]}
row_filters:
  - {table: shop.sales.orders, roles: [emea], using: "region = {{ principal.region }}"}
masks:
  - {column: shop.crm.customers.email, roles: [analyst], with: hash}
`

func parse(t *testing.T, text string) *acl.Policy {
	t.Helper()
	p, err := acl.ParsePolicy("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPolicyReadsAsItIsWritten(t *testing.T) {
	t.Parallel()
	p := parse(t, handbook)
	alice, err := p.Principal("alice")
	if err != nil {
		t.Fatal(err)
	}
	if want := (acl.Principal{Name: "alice", Roles: []string{"emea"}, Attributes: map[string]any{"region": "EMEA"}}); !reflect.DeepEqual(alice, want) {
		t.Errorf("alice is %+v", alice)
	}
	if got := p.Roles(alice); !reflect.DeepEqual(got, []string{"analyst", "emea"}) {
		t.Errorf("alice has the roles %q", got)
	}
	if got := p.Principals(); !reflect.DeepEqual(got, []string{"alice"}) {
		t.Errorf("the principals are %q", got)
	}
	if len(p.Grants) != 2 || len(p.RowFilters) != 1 || len(p.Masks) != 1 {
		t.Fatalf("it has %d grants, %d row filters and %d masks", len(p.Grants), len(p.RowFilters), len(p.Masks))
	}
	allow, deny := p.Grants[0], p.Grants[1]
	if allow.Role != "analyst" || fmt.Sprint(allow.Allow) != "[shop.sales.*]" || allow.Deny != nil || fmt.Sprint(allow.Actions) != "[view query]" || allow.Rule != "line 5: grant to analyst" {
		t.Errorf("the first grant is %+v", allow)
	}
	if fmt.Sprint(deny.Deny) != "[shop.crm.customers.ssn]" || deny.Allow != nil || len(deny.Actions) != len(acl.Actions) || deny.Rule != "line 6: grant to analyst" {
		t.Errorf("the second grant is %+v; a bare deny denies every action", deny)
	}
	f := p.RowFilters[0]
	if f.Table.String() != "shop.sales.orders" || !reflect.DeepEqual(f.Roles, []string{"emea"}) || f.Restrictive ||
		f.Using != "region = {{ principal.region }}" || f.Rule != "line 8: row filter on shop.sales.orders" {
		t.Errorf("the row filter is %+v", f)
	}
	m := p.Masks[0]
	if m.Column.String() != "shop.crm.customers.email" || m.Kind != acl.MaskHash || m.Rule != "line 10: mask on shop.crm.customers.email" {
		t.Errorf("the mask is %+v", m)
	}
	if p.Version() != parse(t, handbook).Version() || p.Version() == parse(t, handbook+"# more\n").Version() {
		t.Error("the version does not stand for the text")
	}
}

func TestAPolicyInBlocksReadsLikeOneInBraces(t *testing.T) {
	t.Parallel()
	p := parse(t, `# who may see what
version: 1

principals:
  alice:
    roles:
      - emea
    attributes:
      region: EMEA   # a comment
roles:
  emea:
    inherits: [analyst]
  analyst:
grants:
  - role: analyst
    allow:
      - shop.sales.*
      - "*"
  - actions: [view]
    role: emea
    deny: [shop.crm]
row_filters:
  - table: shop.sales.orders
    roles: [emea]
    mode: restrictive
    using: |
      region = {{ principal.region }}
      AND id > 0
masks:
`)
	if fmt.Sprint(p.Grants[0].Allow, p.Grants[0].Actions) != "[shop.sales.* *] [view query]" || p.Grants[0].Rule != "line 15: grant to analyst" {
		t.Errorf("the first grant is %+v", p.Grants[0])
	}
	if fmt.Sprint(p.Grants[1].Deny, p.Grants[1].Actions) != "[shop.crm] [view]" || p.Grants[1].Rule != "line 19: grant to emea" {
		t.Errorf("the second grant is %+v", p.Grants[1])
	}
	if f := p.RowFilters[0]; !f.Restrictive || f.Using != "region = {{ principal.region }}\nAND id > 0" {
		t.Errorf("the row filter is %+v", f)
	}
}

func TestEveryFaultIsNamedByItsLineAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	// Each case is a whole file, or lines after a sound beginning of three lines.
	sound := "version: 1\nroles: {a: , b: }\ngrants: [{role: a, allow: ['*']}]\n"
	for _, c := range []struct{ name, text, line, says string }{
		{"an empty file", "", "1", "begin it with version: 1"},
		{"comments only", "# nothing\n", "1", "begin it with version: 1"},
		{"an empty document", "---\n", "1", "begin it with version: 1"},
		{"no YAML", "version: [1", "1", "this is not YAML"},
		{"a list", "- version: 1", "1", "must be a mapping of keys to values, not a list"},
		{"text", "version", "1", "must be a mapping of keys to values, not text"},
		{"two documents", "version: 1\n---\nversion: 1\n", "3", "a policy file holds one"},
		{"no version", "roles: {}", "1", "write version: 1"},
		{"another version", "# v2\nversion: 2", "2", "write version: 1"},
		{"a version in quotes", `version: "1"`, "1", "write version: 1"},
		{"an unknown section", sound + "grant: []", "4", `no key "grant"; known are version, principals, roles, grants, row_filters, masks`},
		{"a section given twice", sound + "roles: {}", "4", "already defined"},
		{"a section that is no list", sound + "masks: {}", "4", "must be a list, not a mapping"},
		{"a section that is no mapping", "version: 1\nprincipals: [alice]", "2", "must be a mapping of keys to values, not a list"},
		{"a principal given twice", "version: 1\nprincipals:\n  x:\n  x:\n", "4", "already defined"},
		{"a principal given twice in two spellings", "version: 1\nprincipals:\n  x:\n  \"x\":\n", "4", "already defined"},
		{"a principal given twice in braces", "version: 1\nprincipals: {x: ,\n  'x': }\n", "3", "already defined"},
		{"a principal given twice with an escape", "version: 1\nprincipals:\n  x:\n  \"\\x78\":\n", "4", "already defined"},
		{"an explicit key", "version: 1\nprincipals:\n  ? x\n  :\n", "3", "write the name before the colon"},
		{"an unknown key of a principal", sound + "principals:\n  x: {role: [a]}", "5", `no key "role"; known are roles, attributes`},
		{"an unknown key of a role", "version: 1\nroles:\n  a: {inherit: [b]}", "3", `no key "inherit"; known are inherits`},
		{"an unknown key of a grant", "version: 1\ngrants:\n- role: a\n  allow: [x]\n  action: [view]", "5", `no key "action"; known are role, allow, deny, actions`},
		{"an unknown key of a row filter", sound + "row_filters:\n- {table: t, roles: [a], using: x, check: y}", "5", `no key "check"; known are table, roles, mode, using`},
		{"an unknown key of a mask", sound + "masks:\n- {column: c, roles: [a], with: null, as: y}", "5", `no key "as"; known are column, roles, with`},
		{"an unknown role of a principal", sound + "principals:\n  x:\n    roles:\n    - a\n    - c", "8", `role "c" is not known; correct its name`},
		{"an unknown inherited role", "version: 1\nroles:\n  a: {inherits: [c]}", "3", `role "c" is not known`},
		{"a role that is only denied something", "version: 1\ngrants:\n- {role: c, deny: [x]}", "3", `role "c" is not known`},
		{"an unknown role of a row filter", sound + "row_filters:\n- {table: t, roles: [c], using: x}", "5", `role "c" is not known`},
		{"an unknown role of a mask", sound + "masks:\n- {column: t, roles: [a, c], with: null}", "5", `role "c" is not known`},
		{"a role that inherits itself", "version: 1\nroles:\n  a: {inherits: [a]}", "3", `role "a" inherits itself (a from a); take one of these links out`},
		{"roles that inherit each other", "version: 1\nroles:\n  a: {inherits: [b]}\n  b: {inherits: [c]}\n  c: {inherits: [b]}", "5", `role "b" inherits itself (b from c from b)`},
		{"a role without a name", "version: 1\nroles: {\"\": }", "2", "a role needs a name"},
		{"a principal without a name", "version: 1\nprincipals: {\"\": }", "2", "a principal needs a name"},
		{"a name that is a number", "version: 1\nprincipals: {7: }", "2", "must be text, not a number; put it in quotes"},
		{"roles that are no list", sound + "principals: {x: {roles: a}}", "4", "roles must be a list, not text; write [...] around it"},
		{"a role that is a boolean", sound + "principals: {x: {roles: [true]}}", "4", "must be text, not a boolean; put it in quotes"},
		{"a grant of nothing", "version: 1\ngrants:\n- {role: a}", "3", "needs allow or deny; list the patterns"},
		{"a grant to nobody", "version: 1\ngrants:\n- {allow: [x]}", "3", "needs a role; write role: NAME"},
		{"an empty grant", "version: 1\ngrants:\n- ", "3", "needs a role"},
		{"an empty allow", "version: 1\nroles: {a: }\ngrants:\n- {role: a, allow: []}", "4", "allow is empty; fill the list or leave the key out"},
		{"a null deny", "version: 1\ngrants:\n- role: a\n  allow: [x]\n  actions: [view]\n  deny:", "6", "deny is empty; fill the list or leave the key out"},
		{"empty actions", "version: 1\ngrants:\n- {role: a, allow: [x], actions: []}", "3", "actions is empty"},
		{"an allow and a deny without actions", "version: 1\ngrants:\n- {role: a, allow: [x], deny: [y]}", "3", "add actions: [...]"},
		{"an unknown action", "version: 1\ngrants:\n- role: a\n  allow: [x]\n  actions:\n  - view\n  - read", "7", `action "read" is not known; known are view, query, edit, approve, administer, audit, impersonate`},
		{"a bad pattern to allow", "version: 1\ngrants:\n- role: a\n  allow:\n  - x\n  - shop..orders", "6", "has an empty segment"},
		{"a bad pattern to deny", "version: 1\ngrants:\n- {role: a, allow: [x]}\n- {role: a, deny: [a.b.c.d.e]}", "4", "the longest name is database.schema.table.column"},
		{"a pattern of no kind", "version: 1\ngrants:\n- {role: a, allow: ['metrics:x']}", "3", "write metric:, relationship:, query:, tag:"},
		{"a table with its kind", "version: 1\ngrants:\n- {role: a, allow: ['table:x']}", "3", "write tables and columns without a kind in front"},
		{"a bad pattern of a row filter", sound + "row_filters:\n- {table: 'shop.', roles: [a], using: x}", "5", "empty segment"},
		{"a bad pattern of a mask", sound + "masks:\n- {column: '\"shop', roles: [a], with: null}", "5", "does not end"},
		{"a row filter without a table", sound + "row_filters:\n- {roles: [a], using: x}", "5", "write table: PATTERN"},
		{"a row filter without roles", sound + "row_filters:\n- {table: t, using: x}", "5", "write roles: [NAME, ...]"},
		{"a row filter with empty roles", sound + "row_filters:\n- {table: t, roles: [], using: x}", "5", "roles is empty"},
		{"a row filter without a condition", sound + "row_filters:\n- {table: t, roles: [a]}", "5", "write using: CONDITION"},
		{"a row filter with a blank condition", sound + "row_filters:\n- {table: t, roles: [a], using: '  '}", "5", "write using: CONDITION"},
		{"a condition that is no text", sound + "row_filters:\n- {table: t, roles: [a], using: true}", "5", "using must be text, not a boolean"},
		{"an unknown mode", sound + "row_filters:\n- table: t\n  roles: [a]\n  mode: Restrictive\n  using: x", "7", `mode "Restrictive" is not known; write permissive or restrictive`},
		{"a null mode", sound + "row_filters:\n- {table: t, roles: [a], using: x, mode: null}", "5", "mode must be text"},
		{"a bad place in a condition", sound + "row_filters:\n- {table: t, roles: [a], using: \"x = {{ region }}\"}", "5", "principal.NAME"},
		{"an unclosed place in a condition", sound + "row_filters:\n- {table: t, roles: [a], using: \"x = {{ principal.x\"}", "5", "principal.NAME"},
		{"a mask without a column", sound + "masks:\n- {roles: [a], with: null}", "5", "write column: PATTERN"},
		{"a mask without roles", sound + "masks:\n- {column: t, with: null}", "5", "write roles: [NAME, ...]"},
		{"a mask with nothing", sound + "masks:\n- {column: t, roles: [a]}", "5", "write with: null, hash, partial, {constant: VALUE} or {expression: SQL}"},
		{"a mask of an unknown form", sound + "masks:\n- column: t\n  roles: [a]\n  with: md5", "7", "write with: null, hash"},
		{"a mask of two forms", sound + "masks:\n- {column: t, roles: [a], with: {constant: 1, expression: x}}", "5", "write with: null, hash"},
		{"a mask of an unknown mapping", sound + "masks:\n- {column: t, roles: [a], with: {hash: sha1}}", "5", "write with: null, hash"},
		{"a mask of an empty mapping", sound + "masks:\n- {column: t, roles: [a], with: {}}", "5", "write with: null, hash"},
		{"a mask of a number", sound + "masks:\n- {column: t, roles: [a], with: 0}", "5", "write with: null, hash"},
		{"a constant that is a list", sound + "masks:\n- {column: t, roles: [a], with: {constant: [x]}}", "5", "must be a text, number or boolean"},
		{"a constant that is null", sound + "masks:\n- {column: t, roles: [a], with: {constant: null}}", "5", "not empty"},
		{"a blank expression", sound + "masks:\n- {column: t, roles: [a], with: {expression: ' '}}", "5", "write with: null, hash"},
		{"a bad place in an expression", sound + "masks:\n- {column: t, roles: [a], with: {expression: '{{ x }}'}}", "5", "principal.NAME"},
		{"an attribute that is null", sound + "principals: {x: {attributes: {y: }}}", "4", `attribute "y" of "x": a value must be`},
		{"an attribute that is a mapping", sound + "principals: {x: {attributes: {y: {z: 1}}}}", "4", "not a mapping"},
		{"an attribute that is infinite", sound + "principals: {x: {attributes: {y: .inf}}}", "4", "no literal in SQL"},
		{"an attribute that is no number", sound + "principals: {x: {attributes: {y: .nan}}}", "4", "no literal in SQL"},
		{"an attribute beyond 64 bits", sound + "principals: {x: {attributes: {y: 9223372036854775808}}}", "4", "in quotes"},
		{"an empty list of attributes", sound + "principals: {x: {attributes: {y: []}}}", "4", "must not be empty"},
		{"a list of texts and numbers", sound + "principals: {x: {attributes: {y: [a, 1]}}}", "4", "either texts or whole numbers"},
		{"a list of booleans", sound + "principals: {x: {attributes: {y: [true]}}}", "4", "either texts or whole numbers"},
		{"a list of lists", sound + "principals: {x: {attributes: {y: [[a]]}}}", "4", "either texts or whole numbers"},
		{"an anchor", sound + "principals: {x: &one {roles: [a]}}", "4", "write the value out"},
		{"an alias", sound + "principals:\n  x: &one {roles: [a]}\n  y: *one", "6", "write the value out"},
		{"a merge", sound + "principals:\n  x:\n    <<: {roles: [a]}", "6", "write the value out"},
		{"a tag", sound + "principals: {x: !!map {roles: [a]}}", "4", "write the value without it"},
		{"brackets without end", "version: " + strings.Repeat("[", 100_000), "1", "nest here; close what is open"},
		{"braces without end", "version: " + strings.Repeat("{a: ", 100_000), "1", "nest here; close what is open"},
		{"dashes without end", strings.Repeat("- ", 100_000), "1", "nest here; close what is open"},
		{"a file that is too large", sound + "#" + strings.Repeat(" ", 2<<20), "1", "may hold 2 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := acl.ParsePolicy("p.yaml", []byte(c.text))
			if err == nil || p != nil {
				t.Fatalf("it is taken")
			}
			for _, line := range strings.Split(err.Error(), "\n") {
				if !regexp.MustCompile(`^p\.yaml:\d+: .{10}`).MatchString(line) {
					t.Errorf("an error reads %q", line)
				}
			}
			for _, line := range strings.Split(err.Error(), "\n") {
				if strings.HasPrefix(line, "p.yaml:"+c.line+": ") && strings.Contains(line, c.says) {
					return
				}
			}
			t.Errorf("no error of line %s says %q in\n%v", c.line, c.says, err)
		})
	}
}

func TestAllFaultsAreReportedInOrder(t *testing.T) {
	t.Parallel()
	_, err := acl.ParsePolicy("p.yaml", []byte(`version: 2
principals:
  x: {roles: [who]}
roles:
  a: {inherit: [b]}
grants:
- {role: a, allow: ["a..b", "c..d"], actions: [read, write]}
- {rule: a}
row_filters:
- {table: t, roles: [a], mode: strict}
masks:
- {column: c, roles: [a], with: md5}
extra: 1
`))
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^p\.yaml:(\d+): `).FindAllStringSubmatch(fmt.Sprint(err), -1) {
		lines = append(lines, m[1])
	}
	if got, want := strings.Join(lines, " "), "1 3 5 7 7 7 7 8 8 8 10 10 12 13"; got != want {
		t.Errorf("faults are on the lines %s, want %s:\n%v", got, want, err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != len(lines) {
		t.Errorf("the faults are not joined: %T", err)
	}
}

func TestMasksAndAttributesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	p := parse(t, `version: 1
principals:
  x:
    attributes: {text: a, number: 7, negative: -7, share: 0.5, yes: true, digits: "7", date: 2024-01-02, hex: 0x10, many: [a, b], ids: [1, -2], big: 9223372036854775807}
grants: [{role: a, allow: ["*"]}]
masks:
- {column: c, roles: [a], with: null}
- {column: c, roles: [a], with: ~}
- {column: c, roles: [a], with: }
- {column: c, roles: [a], with: "null"}
- {column: c, roles: [a], with: hash}
- {column: c, roles: [a], with: partial}
- {column: c, roles: [a], with: {constant: "***"}}
- {column: c, roles: [a], with: {constant: 0}}
- {column: c, roles: [a], with: {constant: 0.5}}
- {column: c, roles: [a], with: {constant: false}}
- {column: c, roles: [a], with: {constant: ""}}
- {column: c, roles: [a], with: {expression: "left(c, 1)"}}
`)
	x, err := p.Principal("x")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"text": "a", "number": int64(7), "negative": int64(-7), "share": 0.5, "yes": true, "digits": "7", "date": "2024-01-02",
		"hex": int64(16), "many": []string{"a", "b"}, "ids": []int64{1, -2}, "big": int64(9223372036854775807)}; !reflect.DeepEqual(x.Attributes, want) {
		t.Errorf("the attributes are %#v", x.Attributes)
	}
	var got []acl.Mask
	for _, m := range p.Masks {
		m.Mask.Rule = ""
		got = append(got, m.Mask)
	}
	null := acl.Mask{Kind: acl.MaskNull}
	constant := func(v any) acl.Mask { return acl.Mask{Kind: acl.MaskConstant, Constant: v} }
	if want := []acl.Mask{null, null, null, null, {Kind: acl.MaskHash}, {Kind: acl.MaskPartial}, constant("***"), constant(int64(0)), constant(0.5),
		constant(false), constant(""), {Kind: acl.MaskExpression, Expression: "left(c, 1)"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the masks are %+v", got)
	}
}

func TestAPrincipalMayHaveNoRoles(t *testing.T) {
	t.Parallel()
	p := parse(t, "version: 1\nprincipals: {a: , b: {}, c: {roles: }, d: {roles: []}}\nroles: {r: {inherits: []}, s: }")
	for _, name := range []string{"a", "b", "c", "d"} {
		who, err := p.Principal(name)
		if err != nil || len(p.Roles(who)) != 0 {
			t.Errorf("%s is %+v, %v", name, who, err)
		}
	}
}

func TestAnUnknownPrincipalIsRefusedWithoutNamingAnybody(t *testing.T) {
	t.Parallel()
	_, err := parse(t, handbook).Principal("mallory")
	var r *acl.Refusal
	if !errors.As(err, &r) || r.Code != acl.CodeUnknownPrincipal || strings.Contains(r.Public+r.Hint, "mallory") || !strings.Contains(r.Detail, "mallory") {
		t.Errorf("the refusal is %+v", r)
	}
}

func TestALargePolicyIsReadInSeconds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\ngrants:\n")
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "  - {role: analyst, allow: [\"shop.sales.t%d\"], actions: [view, query]}\n", i)
	}
	start := time.Now()
	parse(t, b.String())
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("1 MiB took %s", took)
	}
}

func TestALongChainOfRolesIsRead(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nprincipals: {x: {roles: [r0]}}\nroles: {end: ")
	const n = 2000
	for i := range n {
		fmt.Fprintf(&b, ", r%d: {inherits: [r%d, r%d]}", i, min(i+1, n-1), min(i+2, n-1))
	}
	text := strings.Replace(b.String()+"}", fmt.Sprintf("r%d: {inherits: [r%[1]d, r%[1]d]}", n-1), fmt.Sprintf("r%d: {inherits: [end]}", n-1), 1)
	p := parse(t, text)
	x, err := p.Principal("x")
	if err != nil || len(p.Roles(x)) != n+1 {
		t.Errorf("x has %d roles, %v", len(p.Roles(x)), err)
	}
}

// FuzzPolicy holds that no text makes the parser panic, and that what it takes is sound.
func FuzzPolicy(f *testing.F) {
	for _, s := range []string{handbook, "", "version: 1", "version: 1\nmasks: [{column: c, roles: [a], with: }]", "a: &a [*a]", "version: 1\n<<: {a: b}", "? a\n: b", "- - -", "{}: {}",
		"version: 1\nroles: {a: {inherits: [b]}, b: {inherits: [a]}}", "version: 1\nprincipals: {x: {attributes: {y: [1, a, .inf]}}}", "!!x y", "%YAML 1.2\n---\nversion: 1", "a: |\n  b", "\x00", "[]: 1", "version: 1\n---"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := acl.ParsePolicy("p.yaml", data)
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "p.yaml:") {
					t.Fatalf("an error reads %q", line)
				}
			}
			return
		}
		for _, name := range p.Principals() {
			who, err := p.Principal(name)
			if err != nil || name == "" {
				t.Fatalf("principal %q: %v", name, err)
			}
			p.Roles(who)
		}
		for _, g := range p.Grants {
			if g.Role == "" || len(g.Allow)+len(g.Deny) == 0 || len(g.Actions) == 0 {
				t.Fatalf("grant %+v", g)
			}
		}
		for _, r := range p.RowFilters {
			if r.Using == "" || len(r.Roles) == 0 || r.Table.String() == "" {
				t.Fatalf("row filter %+v", r)
			}
		}
		for _, m := range p.Masks {
			if m.Kind == "" || len(m.Roles) == 0 || m.Column.String() == "" {
				t.Fatalf("mask %+v", m)
			}
		}
	})
}
