// Package retrieval links a question to the part of a catalog that answers it, for one principal: it ranks databases,
// tables, columns, metrics and past queries, ties the tables together and renders a context of bounded size. What the
// principal may not see takes no part: it has no score, and no statistic counts it.
package retrieval

import (
	"context"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Index finds the objects of one snapshot in which words occur. Implementations are safe for concurrent use.
type Index interface {
	// Match returns, for each term, its hits among the objects of a kind that the view lets be queried, in id order.
	// All of them: the number of hits is the term's document frequency.
	Match(kind catalog.Kind, terms []Term, v acl.View) [][]Hit
	// Near returns the objects of a kind that the view lets be queried whose meaning is most like the question's: best
	// first and equals in id order, at most Candidates, each with a similarity of at least MinSimilarity. The question is
	// a vector of the embedder that the index was built with; an index built without one gives nothing.
	Near(kind catalog.Kind, question []float32, v acl.View) []Near
}

// MinSimilarity is the similarity below which an object's meaning has nothing to do with the question's.
const MinSimilarity = 0.3

// Near is an object whose meaning is like the question's.
type Near struct {
	ID uint32
	// Similarity is the cosine of the two vectors, at most 1.
	Similarity float64
}

// Embedder turns texts into vectors of length 1 whose angles say how near the meanings are. A text without any meaning
// has a vector of zeros. Implementations are safe for concurrent use.
type Embedder interface {
	// Name tells the embedder's vectors from those of others, with which they do not compare.
	Name() string
	// Dim is the length of its vectors.
	Dim() int
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Hit is an object in which a term occurs.
type Hit struct {
	// Weight is from 0 to 1: how much the object is about the term, whatever the term is worth.
	Weight float64
	ID     uint32
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
	FieldMeaning // in the name, by a word that means about the same
	fields
)

// String says where a word was found, for people.
func (f Field) String() string {
	return [...]string{"name", "description", "values", "meaning"}[f]
}
