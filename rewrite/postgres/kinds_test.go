package postgres

import (
	"bytes"
	"slices"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// newMessage makes an empty message of a kind by its name.
func newMessage(t *testing.T, d protoreflect.MessageDescriptor) protoreflect.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New()
}

// set gives a field a value that is not its default.
func set(t *testing.T, m protoreflect.Message, f protoreflect.FieldDescriptor) {
	t.Helper()
	switch {
	case f.IsList():
		m.Mutable(f).List().Append(protoreflect.ValueOfMessage((&pg.Node{Node: &pg.Node_Integer{Integer: &pg.Integer{Ival: 3}}}).ProtoReflect()))
	case f.Kind() == protoreflect.MessageKind:
		m.Set(f, protoreflect.ValueOfMessage(newMessage(t, f.Message())))
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString("x"))
	case f.Kind() == protoreflect.BoolKind:
		m.Set(f, protoreflect.ValueOfBool(true))
	case f.Kind() == protoreflect.EnumKind:
		m.Set(f, protoreflect.ValueOfEnum(f.Enum().Values().Get(1).Number()))
	case f.Kind() == protoreflect.Uint32Kind:
		m.Set(f, protoreflect.ValueOfUint32(3))
	default:
		m.Set(f, protoreflect.ValueOfInt32(3))
	}
}

// TestListedKindsAreListedCompletely compares the listing of fields with the grammar of the parser's trees, of which a
// new version may know more.
func TestListedKindsAreListedCompletely(t *testing.T) {
	for name := range nodeFields {
		d := pg.File_pg_query_proto.Messages().ByName(protoreflect.Name(name))
		empty, full := newMessage(t, d), newMessage(t, d)
		seen := []spelling{spell(empty.Interface())}
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			one := newMessage(t, d)
			set(t, one, f)
			if f.ContainingOneof() == nil || !full.Has(f) {
				set(t, full, f)
			}
			got := spell(one.Interface())
			known := slices.ContainsFunc(seen, func(s spelling) bool { return bytes.Equal(s, got) })
			if known != isPosition(f) {
				t.Errorf("%s: with %s it is spelled like another, or unlike without a position: %t", name, f.Name(), known)
			}
			seen = append(seen, got)
		}
		var got, want []proto.Message
		inside(full.Interface(), func(m proto.Message) bool { got = append(got, m); return true })
		insideByReflection(full.Interface(), func(m proto.Message) bool { want = append(want, m); return true })
		if !slices.Equal(got, want) {
			t.Errorf("%s: inside are %v, not %v", name, want, got)
		}
	}
}

// TestNodesOfEveryKindHaveContent guards the listing of kinds.
func TestNodesOfEveryKindHaveContent(t *testing.T) {
	d := (&pg.Node{}).ProtoReflect().Descriptor()
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		n := &pg.Node{}
		inner := newMessage(t, f.Message())
		n.ProtoReflect().Set(f, protoreflect.ValueOfMessage(inner))
		if got := content(n); got != inner.Interface() {
			t.Errorf("the content of a node with %s is %v", f.Name(), got)
		}
		if bytes.Equal(spell(n), spell(&pg.Node{})) {
			t.Errorf("a node with %s is spelled like an empty one", f.Name())
		}
	}
	if bytes.Equal(spell(&pg.List{Items: []*pg.Node{nil}}), spell(&pg.List{Items: []*pg.Node{{}}})) {
		t.Error("nothing is spelled like an empty node")
	}
}

// TestSpellingsOfUnlistedKindsIgnorePositions covers what only the policy's own SQL can hold.
func TestSpellingsOfUnlistedKindsIgnorePositions(t *testing.T) {
	at := func(place int32, number int32) *pg.Node {
		return &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: number, Location: place}}}
	}
	if !bytes.Equal(spell(at(1, 1)), spell(at(2, 1))) || bytes.Equal(spell(at(1, 1)), spell(at(1, 2))) {
		t.Error("a parameter is spelled by its place and not by its number")
	}
}
