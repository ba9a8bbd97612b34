package retrieval

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Cache keeps what was costly to make, for a while and within bounds. What was not used for longest goes first. It is
// safe for concurrent use: nobody waits for another key to be made, and what several ask for at once is made once.
type Cache[V any] struct {
	limits Limits
	size   func(V) int

	making singleflight.Group

	mu      sync.Mutex
	entries map[string]*list.Element // of kept[V]
	order   list.List                // the last used first
	bytes   int
}

// Limits bound a cache.
type Limits struct {
	// Age is how long something is served after it began to be made.
	Age     time.Duration
	Entries int
	Bytes   int // keys included
}

type kept[V any] struct {
	key   string
	value V
	until time.Time
	bytes int
}

// NewCache makes an empty cache. size tells about how many bytes a value takes.
func NewCache[V any](limits Limits, size func(V) int) *Cache[V] {
	return &Cache[V]{limits: limits, size: size, entries: map[string]*list.Element{}}
}

// Get returns what is kept under a key, or else makes it and keeps it unless making it failed. A key must say all that
// the value depends on. The value is shared: nobody may change it.
func (c *Cache[V]) Get(ctx context.Context, key string, build func(context.Context) (V, error)) (V, error) {
	for {
		if v, ok := c.find(key); ok {
			return v, nil
		}
		leads := false
		v, err, _ := c.making.Do(key, func() (any, error) {
			leads = true
			start := time.Now()
			v, err := build(ctx)
			if err == nil {
				c.keep(key, v, start.Add(c.limits.Age))
			}
			return v, err
		})
		// That whoever made it for all of us has gone away is no reason for the others to.
		if !leads && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			continue
		}
		made, _ := v.(V)
		return made, err
	}
}

func (c *Cache[V]) find(key string) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return v, false
	}
	k := e.Value.(kept[V])
	if !time.Now().Before(k.until) {
		c.drop(e)
		return v, false
	}
	c.order.MoveToFront(e)
	return k.value, true
}

func (c *Cache[V]) keep(key string, v V, until time.Time) {
	k := kept[V]{key, v, until, len(key) + c.size(v)}
	if k.bytes > c.limits.Bytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.drop(e)
	}
	c.entries[key] = c.order.PushFront(k)
	c.bytes += k.bytes
	for c.bytes > c.limits.Bytes || c.order.Len() > c.limits.Entries {
		c.drop(c.order.Back())
	}
}

func (c *Cache[V]) drop(e *list.Element) {
	k := c.order.Remove(e).(kept[V])
	delete(c.entries, k.key)
	c.bytes -= k.bytes
}

// The bounds of what a CachedLinker keeps of either kind.
var linkedLimits = Limits{Age: time.Minute, Entries: 2000, Bytes: 64 << 20}

// CachedLinker answers a question that was asked within the last minute under the same view as it did then. Views of
// two principals are never the same, so nobody gets what was made for another. It belongs to the edition of its Linker
// and goes with it.
type CachedLinker struct {
	linker   *Linker
	contexts *Cache[Context]
	withheld *Cache[[]catalog.Ref]
}

// NewCachedLinker makes a linker that remembers what another one answers.
func NewCachedLinker(l *Linker) *CachedLinker {
	return &CachedLinker{linker: l, contexts: NewCache(linkedLimits, Context.bytes), withheld: NewCache(linkedLimits, bytesOfRefs)}
}

// Link is Linker.Link, remembered.
func (l *CachedLinker) Link(ctx context.Context, question string, v acl.View) (Context, error) {
	return l.LinkBy(ctx, "", question, v)
}

// LinkBy is Linker.LinkBy, remembered.
func (l *CachedLinker) LinkBy(ctx context.Context, asked Strategy, question string, v acl.View) (Context, error) {
	if v.Key() == "" {
		return l.linker.LinkBy(ctx, asked, question, v)
	}
	// No strategy has a line break in its name.
	c, err := l.contexts.Get(ctx, linkedKey(string(asked)+"\n"+question, v), func(ctx context.Context) (Context, error) {
		return l.linker.LinkBy(ctx, asked, question, v)
	})
	c.Items, c.Joins = slices.Clone(c.Items), slices.Clone(c.Joins)
	return c, err
}

// Withheld is Linker.Withheld, remembered.
func (l *CachedLinker) Withheld(ctx context.Context, question string, v acl.View) ([]catalog.Ref, error) {
	if v.Key() == "" {
		return l.linker.Withheld(ctx, question, v)
	}
	refs, err := l.withheld.Get(ctx, linkedKey(question, v), func(ctx context.Context) ([]catalog.Ref, error) {
		return l.linker.Withheld(ctx, question, v)
	})
	return slices.Clone(refs), err
}

// linkedKey says what a context depends on: the view's key names principal, policy and snapshot and always has the same
// length; the budget is the linker's.
func linkedKey(question string, v acl.View) string { return v.Key() + question }

// Sizes of the parts of a context, about. Names are the snapshot's and cost nothing.
const (
	bytesOfItem = 160
	bytesOfRef  = 96
)

func (c Context) bytes() int {
	n := len(c.Question) + len(c.Because) + len(c.Nothing) + len(c.Text) + 2*bytesOfItem
	for _, it := range c.Items {
		n += bytesOfItem + len(it.Reason) + bytesOfRef*len(it.Members)
	}
	for _, j := range c.Joins {
		n += bytesOfItem + bytesOfRef*len(j.From) + bytesOfRef*len(j.To)
	}
	return n
}

func bytesOfRefs(refs []catalog.Ref) int { return bytesOfRef * (1 + len(refs)) }
