package retrieval

import "github.com/schemagate/schemagate/acl"

// ValueHit is a value of a column that a question names.
type ValueHit struct {
	Column uint32
	// Value is the value as a row has it, Said the part of the question that means it, as the asker wrote it.
	Value, Said string
	// Quality is above 0 and at most 1: how well the two agree, and how likely the asker means a value at all. It is 1 where
	// they are equal but for letter case, accents, punctuation and plural, and less for a misspelt word, for a part of a
	// longer value, for a number, and for a word in small letters, above all one that tables or columns are named by. It
	// does not say how much the value tells columns apart: the number of hits with one span does, for the columns that hold
	// a value all have one.
	Quality float64
	// From and To are the bytes of the question that Said takes up, To not included.
	From, To int
}

// Values finds the values that a question names, in columns whose every row the view may see and query, unmasked. What
// it returns depends on those columns and the names of what the view lets be queried, and on nothing else.
// Implementations are safe for concurrent use.
type Values interface {
	// Find returns the hits by place in the question, then the best first. A column has at most one hit for a span. It
	// returns nothing for a view of another snapshot, nor for values that very many columns hold.
	Find(question string, v acl.View) []ValueHit
}
