package postgres

import (
	"sync"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// maxFragments bounds the bytes of text whose trees are kept.
const maxFragments = 1 << 20

// fragments keeps the trees of texts that come back with every statement: conditions of the policy, types of masked
// columns, definitions of SQL views. It is safe for concurrent use.
type fragments struct {
	mu    sync.Mutex
	bytes int
	trees map[string]*pg.ParseResult // never changed
}

func newFragments() *fragments { return &fragments{trees: map[string]*pg.ParseResult{}} }

// statement returns a tree of a text, without positions, which belongs to the caller. The error is as parse's.
func (f *fragments) statement(text string) (*pg.ParseResult, error) {
	f.mu.Lock()
	kept := f.trees[text]
	f.mu.Unlock()
	if kept != nil {
		return proto.Clone(kept).(*pg.ParseResult), nil
	}
	result, err := parse(text)
	if err != nil {
		return nil, err
	}
	stripPositions(result)
	f.keep(text, proto.Clone(result).(*pg.ParseResult))
	return result, nil
}

func (f *fragments) keep(text string, tree *pg.ParseResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(text) > maxFragments/4 {
		return
	}
	if f.bytes += len(text); f.bytes > maxFragments {
		clear(f.trees)
		f.bytes = len(text)
	}
	f.trees[text] = tree
}

// query returns the one SELECT of a text.
func (f *fragments) query(text string) (*pg.SelectStmt, error) {
	result, err := f.statement(text)
	if err != nil {
		return nil, err
	}
	if q := result.GetStmts(); len(q) == 1 && q[0].GetStmt().GetSelectStmt() != nil {
		return q[0].Stmt.GetSelectStmt(), nil
	}
	return nil, unparsable("it is not one SELECT")
}
