//go:build cgo

package postgres

import pg "github.com/pganalyze/pg_query_go/v6"

// The server's own parser, linked in.

// maxDepth bounds the nesting of a tree in messages, maxChain the estimated nesting of a text before it is parsed. The
// parser recurses on the stack of its thread, where 8 MB were seen to last for 6,000.
const (
	maxDepth = 4500
	maxChain = 3000
)

func parseSQL(sql string) (*pg.ParseResult, error)  { return pg.Parse(sql) }
func deparse(tree *pg.ParseResult) (string, error)  { return pg.Deparse(tree) }
func scanTokens(sql string) (*pg.ScanResult, error) { return pg.Scan(sql) }
