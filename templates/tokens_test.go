package templates_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/schemagate/schemagate/templates"
)

func TestTokens(t *testing.T) {
	c := templates.NewCounter()
	for text, want := range map[string]int{"": 0, "hello world": 2, "SELECT": 1, "customer_id": 2, "顧客": 3} {
		if got := c.Tokens(text); got != want {
			t.Errorf("Tokens(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	c := templates.NewCounter()
	for _, tt := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"text that fits stays", "hello world", 11, "hello world"},
		{"text with more bytes than tokens stays", "internationalization of the world", 6, "internationalization of the world"},
		{"longer text is marked where it was cut", "one two three four five six", 4, "one two three…"},
		{"characters stay whole", strings.Repeat("顧", 40), 8, "顧顧顧…"},
		{"text that the vocabulary does not know whole is cut by bytes", strings.Repeat("a\x7f", 20), 8, "a\x7fa\x7fa…"},
		{"no room but for the mark", "one two three", 1, "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := c.Cut(tt.in, tt.limit); got != tt.want {
				t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
			}
		})
	}
	t.Run("the limit holds for any text", rapid.MakeCheck(func(t *rapid.T) {
		text := strings.ToValidUTF8(hostile().Draw(t, "text"), "")
		limit := rapid.IntRange(4, 200).Draw(t, "limit")
		got := c.Cut(text, limit)
		if n := c.Tokens(got); n > limit {
			t.Fatalf("%d tokens, want at most %d", n, limit)
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		if got != text && !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Fatalf("%q is no beginning of %q", got, text)
		}
	}))
}

func BenchmarkTokens(b *testing.B) {
	c := templates.NewCounter()
	text := strings.Repeat("  customer_id INTEGER, -- who bought it; e.g. '10021', '10022'\n", 17)[:1024]
	c.Tokens(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Tokens(text)
	}
}

func BenchmarkRender(b *testing.B) {
	set := newSet(b, nil)
	_, column, _, _, _ := objects("orders")
	for b.Loop() {
		if _, err := set.Render(column, always("sqlite"), 0); err != nil {
			b.Fatal(err)
		}
	}
}
