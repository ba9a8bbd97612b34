package api

import (
	"context"
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
	return views{p, retrieval.NewCache(viewLimits, func(acl.View) int { return bytesOfView })}
}

// bytesOfView is about what a view takes beyond what it shares with others of the same roles.
const bytesOfView = 200

type views struct {
	policy Policy
	known  *retrieval.Cache[acl.View]
}

// View implements Policy. Refusals are not remembered.
func (s views) View(principal string) (acl.View, error) {
	return s.known.Get(context.Background(), principal, func(context.Context) (acl.View, error) {
		return s.policy.View(principal)
	})
}
