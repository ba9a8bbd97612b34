package casbin_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// These are ways in which Casbin, used plainly, lets through what it should not. Each is asked of Enforce and of the
// view.

var ssn = catalog.ColumnRef("shop", "crm", "customers", "ssn")

// sees asks both for one column, and fails if they differ.
func sees(t *testing.T, s *catalog.Snapshot, policy, principal string, column catalog.Ref) bool {
	t.Helper()
	e, _ := engine(t, s, policy)
	effect, err := e.Enforce(principal, acl.ActionView, column)
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.View(principal)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := s.ID(column)
	if !ok {
		t.Fatalf("no column %s", column)
	}
	if v.Visible(id) != (effect == acl.Allow) {
		t.Fatalf("Enforce says %s of %s, the view %v", effect, column, v.Visible(id))
	}
	return v.Visible(id)
}

func TestAnEmptyPolicyPermitsNothing(t *testing.T) {
	t.Parallel()
	s := shop(t)
	if sees(t, s, "version: 1\nprincipals: {eve: }", "eve", ssn) {
		t.Error("eve sees a column")
	}
	e, _ := engine(t, s, "version: 1")
	for _, principal := range []string{"", "eve"} {
		for _, a := range []acl.Action{"", acl.ActionView} {
			if effect, err := e.Enforce(principal, a, catalog.Ref{}); effect != acl.Deny || err == nil {
				t.Errorf("%q may %q nothing: %v, %v", principal, a, effect, err)
			}
		}
	}
	e, _ = engine(t, s, "version: 1\nprincipals: {eve: }")
	if effect, err := e.Enforce("eve", "", catalog.Ref{}); effect != acl.Deny || err != nil {
		t.Errorf("eve may do nothing to nothing: %v, %v", effect, err)
	}
}

func TestAPrincipalNamedLikeARoleGainsNothing(t *testing.T) {
	t.Parallel()
	s := shop(t)
	for _, name := range []string{"admin", "role:admin", "user:admin", "role%3Aadmin"} {
		policy := fmt.Sprintf("version: 1\nprincipals: {%q: , boss: {roles: [admin]}}\ngrants: [{role: admin, allow: ['*']}]", name)
		if sees(t, s, policy, name, ssn) {
			t.Errorf("%q has the role admin", name)
		}
		if !sees(t, s, policy, "boss", ssn) {
			t.Error("boss lacks the role admin")
		}
	}
}

func TestNamesMayHoldWhatSeparatesFields(t *testing.T) {
	t.Parallel()
	s := shop(t)
	// Joined with commas, the links and rules of these would read alike, and one of two would be lost.
	policy := `version: 1
principals:
  "a": {roles: ["b,role:c"]}
  "a,role:b": {roles: ["c"]}
roles: {"b,role:c": , "c": , "b": }
grants:
- {role: "b,role:c", allow: ["*"]}
- {role: "b,role:c", deny: [shop.crm]}
- {role: c, allow: [shop.crm.customers.ssn]}`
	if sees(t, s, policy, "a", ssn) || !sees(t, s, policy, "a,role:b", ssn) {
		t.Error("the two principals are taken for each other")
	}
	for _, name := range []string{"$$", "a$$b", "a\x00b", "line\nbreak", `quo"te`, "a b", "a,b", "%2C", "user:x", "role:x", "x,allow", "ärger", "(", "r.sub", "a+b"} {
		policy := fmt.Sprintf(`version: 1
principals: {%[1]s: {roles: [%[1]s]}, other: {roles: [plain]}}
roles: {plain: }
grants: [{role: %[1]s, allow: [shop], deny: ["metric:a,b\n\"$$"], actions: [view]}]`, strconv.Quote(name))
		if !sees(t, s, policy, name, ssn) || sees(t, s, policy, "other", ssn) {
			t.Errorf("a role named %q does not do what it says", name)
		}
	}
	// A role set must not read as another one.
	e, _ := engine(t, s, `version: 1
principals: {x: {roles: ["a\0b"]}, y: {roles: [a, b]}, z: {roles: ["a\" \"b"]}}
roles: {"a\0b": , "a\" \"b": , b: }
grants: [{role: a, allow: ["*"]}]`)
	for name, want := range map[string]bool{"x": false, "y": true, "z": false} {
		if v, err := e.View(name); err != nil || v.Visible(0) != want {
			t.Errorf("%s sees something: %v, %v", name, v.Visible(0), err)
		}
	}
}

func TestAnEffectCannotBeMisspelt(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"Deny", "DENY", "denied", "Allow", "eft"} {
		_, err := acl.ParsePolicy("p.yaml", []byte("version: 1\ngrants:\n- {role: a, allow: ['*']}\n- {role: a, "+key+": [shop]}"))
		if err == nil || !strings.Contains(err.Error(), "p.yaml:4: ") {
			t.Errorf("%s is read as %v", key, err)
		}
	}
}

func TestLongChainsOfRolesHoldToTheirEnd(t *testing.T) {
	t.Parallel()
	s := shop(t)
	const length = 60
	chain := "version: 1\nprincipals: {deep: {roles: [r0]}}\nroles:\n"
	for i := range length {
		chain += fmt.Sprintf("  r%d: {inherits: [r%d]}\n", i, i+1)
	}
	chain += fmt.Sprintf("  r%d:\ngrants:\n", length)
	if !sees(t, s, chain+fmt.Sprintf("- {role: r%d, allow: [shop]}", length), "deep", ssn) {
		t.Error("an allow at the end of the chain is lost")
	}
	if sees(t, s, chain+fmt.Sprintf("- {role: r0, allow: [shop]}\n- {role: r%d, deny: [shop.crm]}", length), "deep", ssn) {
		t.Error("a deny at the end of the chain is lost")
	}
}

func TestEveryRuleIsLoadedWhoeverAsks(t *testing.T) {
	t.Parallel()
	// A load that leaves out roles which a principal has only by inheritance loses their denies.
	policy := `version: 1
principals: {alice: {roles: [a]}}
roles: {a: {inherits: [b]}, b: {inherits: [c]}, c: }
grants: [{role: a, allow: ["*"]}, {role: c, deny: [shop.crm.customers.ssn]}]`
	if sees(t, shop(t), policy, "alice", ssn) {
		t.Error("an inherited deny is lost")
	}
}

func TestNoAnswerOutlivesItsPolicy(t *testing.T) {
	t.Parallel()
	s := shop(t)
	allow := "version: 1\nprincipals: {alice: {roles: [a]}}\ngrants:\n- {role: a, allow: ['*']}\n"
	deny := allow + "- {role: a, deny: [shop.crm]}\n"
	revoked := strings.Replace(allow, "roles: [a]", "roles: []", 1)
	if !sees(t, s, allow, "alice", ssn) || sees(t, s, deny, "alice", ssn) || sees(t, s, revoked, "alice", ssn) {
		t.Error("an answer of an earlier policy is given again")
	}
	keys := map[string]bool{}
	for _, p := range []string{allow, deny, revoked} {
		e, _ := engine(t, s, p)
		v, err := e.View("alice")
		if err != nil {
			t.Fatal(err)
		}
		keys[v.Key()] = true
	}
	if len(keys) != 3 {
		t.Error("views of different policies share a key, so a cache would give one for the other")
	}
}

func TestAStarDoesNotEndThePattern(t *testing.T) {
	t.Parallel()
	s := shop(t)
	policy := "version: 1\nprincipals: {alice: {roles: [a]}}\ngrants: [{role: a, allow: ['shop.*.customers.id']}]"
	if sees(t, s, policy, "alice", ssn) || !sees(t, s, policy, "alice", catalog.ColumnRef("shop", "crm", "customers", "id")) {
		t.Error("what stands after the first star does not count")
	}
	for _, pattern := range []string{"shop.crm.customers.s.n", "shop.crm.customers.ss", "hop.crm.customers.ssn", "shop.crm.customers.[a-z]*", "shop.crm.customers.(ssn)", "shop.crm.:any"} {
		_, err := acl.ParsePattern(pattern)
		if err == nil && sees(t, s, "version: 1\nprincipals: {alice: {roles: [a]}}\ngrants: [{role: a, allow: ['"+pattern+"']}]", "alice", ssn) {
			t.Errorf("%s covers %s", pattern, ssn)
		}
	}
}

func TestDeniesAlonePermitNothing(t *testing.T) {
	t.Parallel()
	s := shop(t)
	policy := "version: 1\nprincipals: {alice: {roles: [a]}, eve: }\nroles: {a: }\ngrants: [{role: a, deny: [lite]}]"
	for _, name := range []string{"alice", "eve"} {
		if sees(t, s, policy, name, ssn) {
			t.Errorf("%s sees what no rule allows", name)
		}
	}
	e, _ := engine(t, s, policy)
	if effect, err := e.Enforce("nobody", acl.ActionView, ssn); effect != acl.Deny || err == nil {
		t.Errorf("a principal that nobody knows: %v, %v", effect, err)
	}
}

func TestARuleCannotBeTooShort(t *testing.T) {
	t.Parallel()
	for _, grant := range []string{"{}", "{role: a}", "{allow: ['*']}", "{role: a, allow: []}", "{role: a, allow: ['*'], actions: []}", "{role: a, allow: [''] }", "", "{role: '', allow: ['*']}"} {
		if _, err := acl.ParsePolicy("p.yaml", []byte("version: 1\nroles: {a: }\ngrants:\n- "+grant)); err == nil {
			t.Errorf("the grant %s is taken", grant)
		}
	}
}

func TestRefusedRequestsLeaveNothingInMemory(t *testing.T) {
	s := shop(t)
	e, _ := engine(t, s, staff+`grants: [{role: analyst, allow: [lite]}]`)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	ask := func(n int) {
		for i := range n {
			e.Enforce(fmt.Sprintf("nobody%d", i), acl.ActionView, ssn)
			e.Enforce("alice", acl.ActionView, catalog.ColumnRef("shop", "crm", "customers", fmt.Sprintf("c%d", i)))
			e.View(fmt.Sprintf("nobody%d", i))
			e.View("alice")
		}
	}
	ask(100)
	before := heap()
	ask(5000)
	if after := heap(); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
}
