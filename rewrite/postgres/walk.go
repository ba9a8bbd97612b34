package postgres

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// insideByReflection is inside for every kind of message.
func insideByReflection(message proto.Message, visit func(proto.Message) bool) bool {
	m := message.ProtoReflect()
	if n, ok := message.(*pg.Node); ok {
		// A Node has hundreds of fields of which one is set.
		if n.GetNode() == nil {
			return true
		}
		return visit(m.Get(m.WhichOneof(m.Descriptor().Oneofs().Get(0))).Message().Interface())
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Kind() != protoreflect.MessageKind || !m.Has(f) {
			continue
		}
		if !f.IsList() {
			if !visit(m.Get(f).Message().Interface()) {
				return false
			}
			continue
		}
		list := m.Get(f).List()
		for j := range list.Len() {
			if !visit(list.Get(j).Message().Interface()) {
				return false
			}
		}
	}
	return true
}

// depthOf returns how deeply messages nest in m, or limit if that is less.
func depthOf(m proto.Message, limit int) int {
	if limit <= 0 {
		return 0
	}
	deepest := 0
	inside(m, func(child proto.Message) bool {
		deepest = max(deepest, depthOf(child, limit-1))
		return deepest < limit
	})
	return deepest + 1
}

// isPosition reports whether a field holds a place in the text and no meaning.
func isPosition(f protoreflect.FieldDescriptor) bool {
	switch f.Name() {
	case "location", "stmt_location", "stmt_len":
		return true
	}
	return false
}

// stripPositions clears all positions.
func stripPositions(message proto.Message) {
	m := message.ProtoReflect()
	if _, ok := message.(*pg.Node); !ok {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); isPosition(f) {
				m.Clear(f)
			}
		}
	}
	inside(message, func(child proto.Message) bool {
		stripPositions(child)
		return true
	})
}

func position(message proto.Message) (int, bool) {
	m := message.ProtoReflect()
	f := m.Descriptor().Fields().ByName("location")
	if f == nil || f.Kind() != protoreflect.Int32Kind {
		return 0, false
	}
	at := int(m.Get(f).Int())
	return at, at >= 0
}

// kindOf names the node inside n for the audit.
func kindOf(n *pg.Node) string {
	if c := content(n); c != nil {
		return describe(c)
	}
	return "nothing"
}

func describe(m proto.Message) string {
	if at, ok := position(m); ok {
		return fmt.Sprintf("%s at byte %d", m.ProtoReflect().Descriptor().Name(), at)
	}
	return string(m.ProtoReflect().Descriptor().Name())
}

// names returns the strings of a list of String nodes; ok is false if it holds anything else.
func names(list []*pg.Node) (out []string, ok bool) {
	for _, n := range list {
		s, isString := n.GetNode().(*pg.Node_String_)
		if !isString {
			return nil, false
		}
		out = append(out, s.String_.Sval)
	}
	return out, true
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
