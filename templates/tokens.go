package templates

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Counter counts tokens of text as the cl100k encoding does. Models count in their own ways; this one is among the
// less thrifty, so what fits by its count fits elsewhere with rare exceptions. A Counter is safe for concurrent use.
type Counter struct {
	codec func() *codec.Codec
}

// NewCounter returns a counter, which loads its vocabulary when it is first needed.
func NewCounter() *Counter {
	return &Counter{codec: sync.OnceValue(codec.NewCl100kBase)}
}

// Tokens returns the number of tokens in the text.
func (c *Counter) Tokens(text string) int {
	if text == "" {
		return 0
	}
	n, err := c.codec().Count(text)
	if err != nil {
		return len(text) // no token is shorter than a byte
	}
	return n
}

// mark stands where text was cut off.
const mark = "…"

// Cut shortens the text to at most limit tokens, between two characters, and marks the cut with an ellipsis. A limit
// below 4 gives an ellipsis for any longer text.
func (c *Counter) Cut(text string, limit int) string {
	if len(text) <= limit {
		return text // no token is shorter than a byte
	}
	// Few tokens are longer than 16 bytes; text far beyond that need not be read to its end to be known as too long.
	head := text
	if most := 64 * limit; len(head) > most {
		head = head[:most]
	}
	_, tokens, err := c.codec().Encode(head)
	if err != nil || strings.Join(tokens, "") != head { // the vocabulary loses the DEL character
		return wholeRunes(head[:max(0, limit-len(mark))]) + mark
	}
	if len(tokens) <= limit && len(head) == len(text) {
		return text
	}
	// The mark costs tokens, and a shortened word may fall into more pieces than it had.
	for n := min(limit-1, len(tokens)); n > 0; n-- {
		short := strings.TrimRight(wholeRunes(strings.Join(tokens[:n], "")), " ") + mark
		if c.Tokens(short) <= limit {
			return short
		}
	}
	return mark
}

// wholeRunes drops the beginning of a character from the end of s.
func wholeRunes(s string) string {
	for i := len(s) - 1; i >= 0 && i >= len(s)-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}
