package postgres

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// children calls visit with each message directly inside m, in the order of the fields, and stops when it returns
// false.
func children(m protoreflect.Message, visit func(protoreflect.FieldDescriptor, protoreflect.Message) bool) bool {
	if n, ok := m.Interface().(*pg.Node); ok {
		// A Node has hundreds of fields of which one is set.
		if n.GetNode() == nil {
			return true
		}
		field := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
		return visit(field, m.Get(field).Message())
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Kind() != protoreflect.MessageKind || !m.Has(f) {
			continue
		}
		if !f.IsList() {
			if !visit(f, m.Get(f).Message()) {
				return false
			}
			continue
		}
		list := m.Get(f).List()
		for j := range list.Len() {
			if !visit(f, list.Get(j).Message()) {
				return false
			}
		}
	}
	return true
}

// nestsTooDeeply reports whether a tree is deeper than maxDepth. Most are too small to be: a message takes two bytes.
func nestsTooDeeply(tree *pg.ParseResult) bool {
	return proto.Size(tree)/2 > maxDepth && depthOf(tree.ProtoReflect(), maxDepth+1) > maxDepth
}

// depthOf returns how deeply messages nest in m, or limit if that is less.
func depthOf(m protoreflect.Message, limit int) int {
	if limit <= 0 {
		return 0
	}
	deepest := 0
	children(m, func(_ protoreflect.FieldDescriptor, child protoreflect.Message) bool {
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

// stripPositions clears all positions, so that trees of the same meaning are equal.
func stripPositions(m protoreflect.Message) {
	if _, ok := m.Interface().(*pg.Node); !ok {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); isPosition(f) {
				m.Clear(f)
			}
		}
	}
	children(m, func(_ protoreflect.FieldDescriptor, child protoreflect.Message) bool {
		stripPositions(child)
		return true
	})
}

func position(m protoreflect.Message) (int, bool) {
	f := m.Descriptor().Fields().ByName("location")
	if f == nil || f.Kind() != protoreflect.Int32Kind {
		return 0, false
	}
	at := int(m.Get(f).Int())
	return at, at >= 0
}

// kindOf names the node inside n for the audit.
func kindOf(n *pg.Node) string {
	if n.GetNode() == nil {
		return "nothing"
	}
	m := n.ProtoReflect()
	inner := m.Get(m.WhichOneof(m.Descriptor().Oneofs().Get(0))).Message()
	return describe(inner)
}

func describe(m protoreflect.Message) string {
	if at, ok := position(m); ok {
		return fmt.Sprintf("%s at byte %d", m.Descriptor().Name(), at)
	}
	return string(m.Descriptor().Name())
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
