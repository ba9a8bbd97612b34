package api

import (
	"context"
	"fmt"
	"time"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/retrieval"
)

// viewLimits bound how many views a policy's cache holds, and for how long one is served.
var viewLimits = retrieval.Limits{Age: 5 * time.Minute, Entries: 10_000, Bytes: 4 << 20}

// CacheViews makes a policy that remembers each principal's view for five minutes. It belongs to the edition of p and
// goes with it, so a new policy takes effect at once; what changes about a principal elsewhere, as in a directory, does
// within the five minutes.
func CacheViews(p Policy) Policy {
	return views{p, time.Now, retrieval.NewCache(viewLimits, func(acl.View) int { return bytesOfView })}
}

// bytesOfView is about what a view takes beyond what it shares with others of the same roles.
const bytesOfView = 200

type views struct {
	policy Policy
	now    func() time.Time
	known  *retrieval.Cache[acl.View]
}

// View implements Policy. Refusals are not remembered.
func (s views) View(principal string) (acl.View, error) {
	return s.get(asker{principal, ""}, func() (acl.View, error) { return s.policy.View(principal) })
}

// ViewFor implements Policy.
func (s views) ViewFor(service, person string) (acl.View, error) {
	return s.get(asker{service, person}, func() (acl.View, error) { return s.policy.ViewFor(service, person) })
}

// asker is who asks, and for whom.
type asker struct{ principal, person string }

// get serves a view from memory unless its time is over.
func (s views) get(who asker, make func() (acl.View, error)) (acl.View, error) {
	v, err := s.known.Get(context.Background(), fmt.Sprintf("%q %q", who.principal, who.person), func(context.Context) (acl.View, error) { return make() })
	if err == nil && !v.Until().IsZero() && !s.now().Before(v.Until()) {
		return make()
	}
	return v, err
}
