package retrieval

import (
	"sync/atomic"
	"time"
)

// tally remembers how many tokens parts of contexts take as one view shows them, each in its own place: what comes to
// the same place later takes it. A number says nothing but how long a text is that the view shows, and no other view
// gets it. It is safe for concurrent use, and its zero value is empty.
type tally [1 << 14]atomic.Uint64 // what is counted, plus 1, and then tokens

// counted is a part of a context: an object in one of its forms.
type counted uint64

// The forms.
const (
	formAlone = iota // a table without columns, and what a column adds to a table
	formWhole        // a table with all columns
	forms
)

func countedOf(id uint32, form int) counted { return counted(id)*forms + counted(form) }

const tokenBits = 24

// tokens returns the size of a part, which is computed if it is not known; that may fail.
func (t *tally) tokens(c counted, compute func() (tokens int, ok bool)) (tokens int, ok bool) {
	at := &t[c%counted(len(t))]
	if x := at.Load(); x>>tokenBits == uint64(c)+1 {
		return int(x & (1<<tokenBits - 1)), true
	}
	tokens, ok = compute()
	if ok && 0 <= tokens && tokens < 1<<tokenBits {
		at.Store((uint64(c)+1)<<tokenBits | uint64(tokens))
	}
	return tokens, ok
}

// tallyLimits bound what a linker remembers of views.
var tallyLimits = Limits{Age: 5 * time.Minute, Entries: 256, Bytes: 64 << 20}

func (t *tally) bytes() int { return 8 * len(t) }
