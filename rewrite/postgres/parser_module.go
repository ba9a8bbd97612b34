//go:build !cgo

package postgres

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"
	wasm "github.com/wasilibs/go-pgquery"
	"github.com/wasilibs/go-pgquery/parser"
)

// The server's own parser as WebAssembly, for builds without a C compiler. It shares the tree's types with the native
// one, whose Go files for them need no cgo.

// maxDepth and maxChain are as in the native build. The module's stack is small, and overflowing it writes over its
// data, which was seen from a depth of 170 on.
const (
	maxDepth = 100
	maxChain = 200
)

// checkPrinted says whether everything that is printed is tried at once. This printer is older than the native one.
const checkPrinted = true

func parseSQL(sql string) (tree []byte, err error) {
	defer recovered(&err)
	return parser.ParseToProtobuf(sql)
}

func deparseTree(tree []byte) (text string, err error) {
	defer recovered(&err)
	return parser.DeparseFromProtobuf(tree)
}

func scanTokens(sql string) (tokens *pg.ScanResult, err error) {
	defer recovered(&err)
	return wasm.Scan(sql)
}

// recovered makes an error of the panic by which the module's traps arrive.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the parser's module stopped: %v", p)
	}
}
