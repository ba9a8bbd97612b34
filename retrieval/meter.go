package retrieval

import (
	"strings"
	"sync"

	"github.com/schemagate/schemagate/templates"
)

// meter counts tokens line by line and remembers what it counted, since the same columns are written time and again.
// A token never reaches beyond the line breaks that end a line, so the lines' counts add up to that of the whole. A
// count says nothing but how long a text is that the asker is about to read, so all askers share one meter.
type meter struct {
	counter    *templates.Counter
	mu         sync.Mutex
	young, old map[string]int
}

// meterSize is the number of lines that a generation of the meter remembers.
const meterSize = 1 << 14

func newMeter(c *templates.Counter) *meter { return &meter{counter: c, young: map[string]int{}} }

func (m *meter) tokens(text string) int {
	n := 0
	for text != "" {
		end := strings.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		for end < len(text) && text[end] == '\n' {
			end++
		}
		n += m.line(text[:end])
		text = text[end:]
	}
	return n
}

func (m *meter) line(text string) int {
	m.mu.Lock()
	n, ok := m.young[text]
	if !ok {
		n, ok = m.old[text]
	}
	m.mu.Unlock()
	if ok {
		return n
	}
	n = m.counter.Tokens(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.young) >= meterSize {
		m.young, m.old = map[string]int{}, m.young
	}
	m.young[strings.Clone(text)] = n // a line would hold on to the whole context
	return n
}
