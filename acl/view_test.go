package acl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

func small(t *testing.T) *catalog.Snapshot {
	t.Helper()
	rows := int64(3)
	s, err := catalog.Build([]catalog.Database{{Name: "d", Dialect: catalog.SQLite}}, []catalog.Object{
		{Ref: catalog.TableRef("d", "", "t"), Table: &catalog.Table{Rows: &rows}},
		{Ref: catalog.ColumnRef("d", "", "t", "c"), Column: &catalog.Column{Samples: []string{"x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheZeroViewSeesNothing(t *testing.T) {
	t.Parallel()
	var v acl.View
	for id := range uint32(3) {
		for _, a := range acl.Actions {
			if v.May(a, id) || v.MayEverywhere(a) {
				t.Errorf("it may %s", a)
			}
		}
		if _, ok := v.Object(id); ok || v.Visible(id) || v.Queryable(id) || v.Raw(id) {
			t.Errorf("it sees object %d", id)
		}
		if f, protected := v.Filter(id); !protected || len(f.Permissive) != 0 {
			t.Error("it shows rows")
		}
		if m, masked := v.Mask(id); !masked || m.Kind != acl.MaskNull {
			t.Error("it shows values")
		}
	}
	restricted, err := v.Restricted()
	if err != nil || restricted.Len() != 0 {
		t.Errorf("its catalog holds %d objects, %v", restricted.Len(), err)
	}
	if s, p := v.Edition(); !v.Queryables().IsEmpty() || v.Key() != "" || v.Policy() != "" || v.Snapshot() != nil || v.Roles() != nil || s+p != "" {
		t.Error("it stands for something")
	}
}

func TestAViewWithoutBitmapsSeesNothing(t *testing.T) {
	t.Parallel()
	v := acl.NewView(acl.Principal{Name: "x"}, &acl.Compiled{Snapshot: small(t)})
	if v.Visible(0) || v.Raw(0) || !v.Queryables().IsEmpty() || v.MayEverywhere(acl.ActionAudit) {
		t.Error("it sees something")
	}
}

func TestEverythingSeesAllAndMayChangeNothing(t *testing.T) {
	t.Parallel()
	s := small(t)
	v := acl.Everything(s)
	for _, o := range s.All() {
		got, ok := v.Object(o.ID)
		if !ok || !reflect.DeepEqual(got, o) || !v.Queryable(o.ID) || v.May(acl.ActionEdit, o.ID) {
			t.Errorf("%s reads %+v", o.Ref, got)
		}
	}
	restricted, err := v.Restricted()
	if err != nil || restricted.Version() != s.Version() {
		t.Errorf("its catalog differs from the whole, %v", err)
	}
	if !v.MayEverywhere(acl.ActionView) || v.MayEverywhere(acl.ActionAudit) {
		t.Error("it may do more than view and query")
	}
	empty, err := catalog.Build(nil, nil)
	if err != nil || acl.Everything(empty).MayEverywhere(acl.ActionView) {
		t.Errorf("of an empty catalog, everything may be seen, %v", err)
	}
}

func TestAKeyHoldsAllThatAViewDependsOn(t *testing.T) {
	t.Parallel()
	s := small(t)
	other, err := catalog.Build([]catalog.Database{{Name: "d", Dialect: catalog.SQLite}}, []catalog.Object{{Ref: catalog.TableRef("d", "", "t"), Table: &catalog.Table{}}})
	if err != nil {
		t.Fatal(err)
	}
	with := func(k string, v any) acl.Principal {
		return acl.Principal{Name: "a", Attributes: map[string]any{k: v}}
	}
	seen := map[string]int{}
	for i, v := range []acl.View{
		acl.NewView(acl.Principal{Name: "a"}, &acl.Compiled{Snapshot: s}),
		acl.NewView(acl.Principal{Name: "b"}, &acl.Compiled{Snapshot: s}),
		acl.NewView(acl.Principal{Name: "a"}, &acl.Compiled{Snapshot: other}),
		acl.NewView(acl.Principal{Name: "a"}, &acl.Compiled{Snapshot: s, Policy: "1"}),
		acl.NewView(acl.Principal{Name: "a"}, &acl.Compiled{Snapshot: s, Roles: []string{"x y"}}),
		acl.NewView(acl.Principal{Name: "a"}, &acl.Compiled{Snapshot: s, Roles: []string{"x", "y"}}),
		acl.NewView(acl.Principal{Name: "a"}, &acl.Compiled{Snapshot: s, Roles: []string{`x" "y`}}),
		acl.NewView(with("n", int64(1)), &acl.Compiled{Snapshot: s}),
		acl.NewView(with("n", 1.0), &acl.Compiled{Snapshot: s}),
		acl.NewView(with("n", "1"), &acl.Compiled{Snapshot: s}),
		acl.NewView(with("n", []int64{1}), &acl.Compiled{Snapshot: s}),
		acl.NewView(with("m", int64(1)), &acl.Compiled{Snapshot: s}),
	} {
		if other, twice := seen[v.Key()]; twice {
			t.Errorf("views %d and %d share a key", other, i)
		}
		seen[v.Key()] = i
	}
}

func TestTheNameIsAnAttributeUnlessThePolicySetsOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who  acl.Principal
		want any
		ok   bool
	}{
		{acl.Principal{Name: "alice"}, "alice", true},
		{acl.Principal{Name: "alice", Attributes: map[string]any{"name": "Al"}}, "Al", true},
		{acl.Principal{}, "", false},
	} {
		if got, ok := c.who.Attribute("name"); got != c.want || ok != c.ok {
			t.Errorf("the name of %+v is %v, %v", c.who, got, ok)
		}
	}
	if _, ok := (acl.Principal{Name: "alice"}).Attribute("region"); ok {
		t.Error("an attribute that nobody set is there")
	}
}

func TestDeniedAndAbsentReadAlike(t *testing.T) {
	t.Parallel()
	denied, absent := acl.NotAvailable("shop.x", "denied by line 4"), acl.NotAvailable("shop.x", "the catalog does not hold it")
	if denied.Public != absent.Public || denied.Hint != absent.Hint || denied.Code != absent.Code || denied.Error() != denied.Public || denied.Detail == absent.Detail {
		t.Errorf("%+v and %+v", denied, absent)
	}
	if acl.Effect(0) != acl.Deny || acl.Deny.String() != "deny" || acl.Allow.String() != "allow" {
		t.Error("the zero effect does not deny")
	}
}

func TestTemplatesAreSplitAtTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want *acl.Template
	}{
		{"a = 1", &acl.Template{Text: []string{"a = 1"}}},
		{"a = {{ principal.x }}", &acl.Template{Text: []string{"a = ", ""}, Attributes: []string{"x"}}},
		{"{{principal.x}}={{  principal.y_2  }}!", &acl.Template{Text: []string{"", "=", "!"}, Attributes: []string{"x", "y_2"}}},
		{"a = '{}'", &acl.Template{Text: []string{"a = '{}'"}}},
		{"{{ x }}", nil},
		{"{{ principal.x", nil},
		{"principal.x }}", nil},
		{"{{ principal.2x }}", nil},
		{"{{ principal.x | upper }}", nil},
		{"{{ principal.x }}}}", nil},
		{"{{}}", nil},
	} {
		got, err := acl.ParseTemplate(c.sql)
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), "principal.NAME") {
				t.Errorf("%s is taken as %q, %v", c.sql, got, err)
			}
		} else if err != nil || !reflect.DeepEqual(got, *c.want) {
			t.Errorf("%s reads %q, %v", c.sql, got, err)
		}
	}
}
