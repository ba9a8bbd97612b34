//go:build cgo

package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"
)

// The server's own parser, linked in.

// maxDepth bounds the nesting of a tree in messages, maxChain the estimated nesting of a text before it is parsed. The
// parser recurses on the stack of its thread, where 8 MB were seen to last for 6,000.
const (
	maxDepth = 4500
	maxChain = 3000
)

// checkPrinted says whether everything that is printed is tried at once.
const checkPrinted = false

func parseSQL(sql string) ([]byte, error)           { return parser.ParseToProtobuf(sql) }
func deparseTree(tree []byte) (string, error)       { return parser.DeparseFromProtobuf(tree) }
func scanTokens(sql string) (*pg.ScanResult, error) { return pg.Scan(sql) }
