package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/catalog"
)

func TestDiffListsWhatHappenedToEachObject(t *testing.T) {
	described := func(objects []catalog.Object, text string) []catalog.Object {
		objects[0].Description = text
		return objects
	}
	old := build(t, table("a", []string{"x"}, nil), described(table("b", []string{"x", "y"}, nil), "one"), table("c", []string{"x"}, nil),
		[]catalog.Object{metric("m", "1", "a"), metric("n", "1", "c")})
	new := build(t, table("A", []string{"x"}, nil), described(table("b", []string{"x"}, nil), "two"), table("d", []string{"x"}, nil),
		[]catalog.Object{metric("m", "2", "A")})
	d := catalog.Diff(old, new)
	for _, c := range []struct {
		what string
		got  []catalog.Ref
		want string
	}{
		{"added", d.Added, "d d.x"},
		{"removed", d.Removed, "c b.y c.x metric:n"},
		{"changed", d.Changed, "A b A.x metric:m"},
	} {
		if texts(c.got) != c.want {
			t.Errorf("%s: %s, want %s", c.what, texts(c.got), c.want)
		}
	}
	if d.Empty() {
		t.Error("the difference says it is none")
	}
	back := catalog.Diff(new, old)
	if texts(back.Added) != texts(d.Removed) || texts(back.Removed) != texts(d.Added) {
		t.Errorf("the way back is %+v", back)
	}
}

func TestDiffIsEmptyExactlyIfVersionsAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, other := drawWorld(t), drawWorld(t)
		one, err := catalog.Build(w.databases, w.objects(nil))
		if err != nil {
			t.Fatal(err)
		}
		other.databases = w.databases
		two, err := catalog.Build(other.databases, other.objects(nil))
		if err != nil {
			t.Fatal(err)
		}
		if same := one.Version() == two.Version(); same != catalog.Diff(one, two).Empty() {
			t.Errorf("versions equal: %t, difference: %+v", same, catalog.Diff(one, two))
		}
	})
}

func TestDiffIgnoresWhatDoesNotReadDifferently(t *testing.T) {
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	with := func(tags []string, at time.Time) *catalog.Snapshot {
		q := query("q", "", "t")
		q.Tags, q.Query.LastRun = tags, at
		return build(t, table("t", nil, nil), []catalog.Object{q})
	}
	one, two := with(nil, at), with([]string{}, at.In(time.FixedZone("CET", 3600)))
	if d := catalog.Diff(one, two); !d.Empty() || one.Version() != two.Version() {
		t.Errorf("got %+v", d)
	}
}

func TestApplyLaysEditsOverASnapshot(t *testing.T) {
	objects := func() []catalog.Object {
		out := table("t", []string{"x"}, nil)
		out[0].Description, out[0].Owner, out[0].Tags, out[0].Synonyms = "source", "source", []string{"source"}, []string{"source"}
		return out
	}
	s := build(t, objects())
	version := s.Version()
	values := []string{"one", "two"}
	edits := []catalog.Edit{
		{Ref: ref("T"), Field: catalog.FieldDescription, Values: []string{"earlier"}},
		{Ref: ref("t"), Field: catalog.FieldDescription, Values: []string{"later"}},
		{Ref: ref("t"), Field: catalog.FieldOwner},
		{Ref: ref("t"), Field: catalog.FieldTags, Values: values},
		{Ref: ref("t.x"), Field: catalog.FieldSynonyms, Values: []string{"ex"}},
		{Ref: ref("gone"), Field: catalog.FieldOwner, Values: []string{"nobody"}},
	}
	got, dangling, err := catalog.Apply(s, edits)
	if err != nil {
		t.Fatal(err)
	}
	values[0] = "changed afterwards"
	want := objects()
	want[0].Description, want[0].Owner, want[0].Tags = "later", "", []string{"one", "two"}
	want[1].Synonyms = []string{"ex"}
	if d := catalog.Diff(build(t, want), got); !d.Empty() || got.Version() != build(t, want).Version() {
		t.Errorf("the edited catalog differs in %+v", d)
	}
	if len(dangling) != 1 || dangling[0].Ref != ref("gone") {
		t.Errorf("dangling edits are %+v", dangling)
	}
	if s.Version() != version || lookup(t, s, ref("t")).Description != "source" || len(lookup(t, s, ref("t.x")).Synonyms) != 0 {
		t.Error("the snapshot itself was changed")
	}
	if same, left, err := catalog.Apply(s, edits[5:]); err != nil || same != s || len(left) != 1 {
		t.Errorf("without an edit that applies: %v, %v, %v", same, left, err)
	}
}

func TestFaultyEditsAreRefused(t *testing.T) {
	s := build(t, table("t", nil, nil))
	for want, e := range map[string]catalog.Edit{
		"description takes one value": {Ref: ref("t"), Field: catalog.FieldDescription, Values: []string{"a", "b"}},
		"owner takes one value":       {Ref: ref("t"), Field: catalog.FieldOwner, Values: []string{"a", "b"}},
		`"rows" cannot be edited`:     {Ref: ref("t"), Field: "rows"},
		"must name an object":         {Field: catalog.FieldTags},
	} {
		if _, _, err := catalog.Apply(s, []catalog.Edit{e}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, f := range []catalog.Field{catalog.FieldTags, catalog.FieldSynonyms} {
		if err := (catalog.Edit{Ref: ref("t"), Field: f, Values: slices.Repeat([]string{"x"}, 3)}).Validate(); err != nil {
			t.Error(err)
		}
	}
}
