// Package retrieval links a question to the part of a catalog that answers it, for one principal: it ranks databases,
// tables, columns, metrics and past queries, ties the tables together and renders a context of bounded size. What the
// principal may not see takes no part: it has no score, and no statistic counts it.
package retrieval

import (
	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Index finds the objects of one snapshot in which words occur. Implementations are safe for concurrent use.
type Index interface {
	// Match returns, for each term, its hits among the objects of a kind that the view lets be queried, in id order.
	// All of them: the number of hits is the term's document frequency.
	Match(kind catalog.Kind, terms []Term, v acl.View) [][]Hit
}

// Hit is an object in which a term occurs.
type Hit struct {
	ID uint32
	// Weight is from 0 to 1: how much the object is about the term, whatever the term is worth.
	Weight float64
	// Where is the field that contributed most.
	Where Field
}

// Field is a part of an object's text.
type Field uint8

// The fields. Values come from rows and match only for a view that may see them.
const (
	FieldName Field = iota
	FieldText
	FieldValue
	fields
)

// String says where a word was found, for people.
func (f Field) String() string {
	return [...]string{"name", "description", "values"}[f]
}
