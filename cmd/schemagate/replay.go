package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/api/generate"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/store"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/templates"
)

// replayed is an old answer, made again.
type replayed struct {
	Record string `json:"record"`
	// Reproduced says that on the catalog and policy of that time the same comes out.
	Reproduced bool `json:"reproduced"`
	// Same says that today's catalog and policy give the same.
	Same bool     `json:"same"`
	Why  []string `json:"why"` // it does not
	Then answered `json:"then"`
	Now  answered `json:"now"`
}

// answered is what a record says of an answer.
type answered struct {
	Snapshot   string        `json:"snapshot"`
	Policy     string        `json:"policy"`
	Outcome    audit.Outcome `json:"outcome"`
	Code       string        `json:"code,omitempty"`
	Returned   []string      `json:"returned,omitempty"`
	GuardedSQL string        `json:"guarded_sql,omitempty"`
}

func answeredIn(r audit.Record) answered {
	return answered{r.Snapshot, r.Policy, r.Outcome, r.Code, r.Returned, r.GuardedSQL}
}

// differences lists what differs of two answers, whatever they rest on.
func (a answered) differences(b answered) []string {
	var out []string
	if a.Outcome != b.Outcome || a.Code != b.Code {
		out = append(out, fmt.Sprintf("it was %s, now it is %s", a.ending(), b.ending()))
	}
	for _, r := range a.Returned {
		if !slices.Contains(b.Returned, r) {
			out = append(out, r+" is no longer shown")
		}
	}
	for _, r := range b.Returned {
		if !slices.Contains(a.Returned, r) {
			out = append(out, r+" is shown now")
		}
	}
	if len(out) == 0 && !slices.Equal(a.Returned, b.Returned) {
		out = append(out, "objects are shown in another order")
	}
	if a.GuardedSQL != b.GuardedSQL && a.GuardedSQL != "" && b.GuardedSQL != "" {
		out = append(out, "the governed statement is another one")
	}
	return out
}

func (a answered) ending() string {
	return strings.TrimSpace(string(a.Outcome) + " " + a.Code)
}

func auditReplayCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "replay RECORD",
		Short: "Make an old answer again, then and now",
		Long: `Answer the question or statement of a record again, on the catalog and the policy of its time and on those of today, and
say what differs and whether the catalog or the policy is the reason. Both come from the catalog store; a policy that
was never put in force there is given with --policy, and a catalog that was not stored then cannot be had back.
Exit code 4 means that the answer differs. The replay itself is put on record.`,
		Example: `  schemagate audit replay 4QZ7NJQ3W5YB2ZT6S4V7XGJ5KA --store catalog.db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := stateFile(o.audit, "audit.jsonl")
			if err != nil {
				return err
			}
			r, err := audit.Show(c.Context(), path, args[0])
			if err != nil {
				return err
			}
			if r.Question == "" && r.SQL == "" {
				return usagef("record %s holds neither a question nor a statement", args[0])
			}
			out, err := o.replay(c.Context(), r)
			if err != nil {
				return err
			}
			log, err := o.openAudit(c.Context())
			if err != nil {
				return err
			}
			defer log.Close()
			if _, err := log.Append(c.Context(), audit.Record{Face: "cli", Action: "replay", Principal: login(), Question: "record " + r.ID, Outcome: audit.Answered}); err != nil {
				return err
			}
			if o.json {
				err = printJSON(c.OutOrStdout(), out)
			} else {
				writeReplayed(c.OutOrStdout(), r, out)
			}
			if err == nil && !(out.Reproduced && out.Same) {
				err = said(errFound)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.store, "store", "", "catalog store (default in the user's state directory)")
	f.StringVar(&o.policy, "policy", "", "policy file of that time, if it was never put in force in the store")
	f.StringVar(&o.audit, "audit", "", "audit log (default in the user's state directory)")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
	return c
}

// replay answers a record's question then, now, and with only one of the two changed.
func (o *options) replay(ctx context.Context, r audit.Record) (replayed, error) {
	out := replayed{Record: r.ID, Then: answeredIn(r), Why: []string{}}
	var oldCatalog, newCatalog *catalog.Snapshot
	var oldPolicy, newPolicy *acl.Policy
	err := o.withStore(ctx, func(s *store.Store) (err error) {
		if oldCatalog, _, err = s.AsOf(ctx, r.Time); err != nil {
			return err
		}
		newCatalog, _, err = s.Latest(ctx)
		return err
	})
	if err != nil {
		return out, err
	}
	if oldCatalog.Version() != r.Snapshot {
		return out, fmt.Errorf("the answer rests on a catalog (version %.12s) that the store did not hold then; it cannot be made again", r.Snapshot)
	}
	newPolicy, err = o.thePolicy(ctx)
	if err != nil {
		return out, err
	}
	if newPolicy.Version() == r.Policy {
		oldPolicy = newPolicy
	} else if oldPolicy, _, err = o.storedPolicy(ctx, r.Policy); errors.Is(err, store.ErrUnknownVersion) || errors.Is(err, store.ErrNoPolicy) {
		return out, fmt.Errorf("the answer rests on a policy (version %.12s) that was never put in force in the store; name its file with --policy", r.Policy)
	} else if err != nil {
		return out, err
	}
	if current, _, err := o.storedPolicy(ctx, ""); err == nil {
		newPolicy = current
	}
	then, err := again(ctx, r, oldCatalog, oldPolicy, r.Time)
	if err != nil {
		return out, err
	}
	out.Reproduced = len(out.Then.differences(then)) == 0
	if out.Now, err = again(ctx, r, newCatalog, newPolicy, time.Now()); err != nil {
		return out, err
	}
	differs := then.differences(out.Now)
	if out.Same = len(differs) == 0; out.Same {
		return out, nil
	}
	out.Why = append(out.Why, differs...)
	for _, part := range [...]struct {
		name    string
		catalog *catalog.Snapshot
		policy  *acl.Policy
		at      time.Time
	}{
		{"the catalog alone makes the difference", newCatalog, oldPolicy, r.Time},
		{"the policy alone makes the difference", oldCatalog, newPolicy, r.Time},
		{"the time alone, by which grants begin and end, makes the difference", oldCatalog, oldPolicy, time.Now()},
	} {
		one, err := again(ctx, r, part.catalog, part.policy, part.at)
		if err != nil {
			return out, err
		}
		if len(one.differences(out.Now)) == 0 {
			out.Why = append(out.Why, part.name)
		}
	}
	return out, nil
}

// again answers the question of a record, on a catalog, under a policy and at a time.
func again(ctx context.Context, r audit.Record, s *catalog.Snapshot, p *acl.Policy, at time.Time) (answered, error) {
	policy, err := casbin.New(p, s)
	if err != nil {
		return answered{}, err
	}
	policy.Now = func() time.Time { return at }
	e := &api.Edition{Policy: policy}
	if r.Action != "guard" {
		ranker, err := newRanker(ctx, s, "")
		if err != nil {
			return answered{}, err
		}
		ranker.Now = policy.Now
		if e.Linker, err = retrieval.NewLinker(ranker, lineage.New(s), templates.NewCounter(), retrieval.DefaultConfig); err != nil {
			return answered{}, err
		}
	}
	var kept keeper
	engine := api.NewEngine(e, guards(), generate.NewMetrics(policy.Now), &kept, nil)
	request := api.Request{Face: r.Face, Principal: r.Principal, OnBehalfOf: r.OnBehalfOf, Question: r.Question, Strategy: retrieval.Strategy(r.Strategy)}
	switch r.Action {
	case "context":
		_, err = engine.Context(ctx, request)
	case "ask":
		_, err = engine.Ask(ctx, request, false)
	case "guard":
		_, err = engine.Guard(ctx, request, r.Database, r.SQL)
	default:
		return answered{}, usagef("a record of %q cannot be made again", r.Action)
	}
	var fault *api.Fault
	if err != nil && !errors.As(err, &fault) {
		return answered{}, err
	}
	return answeredIn(audit.Record(kept)), nil
}

// keeper keeps the last record instead of writing it.
type keeper audit.Record

// Append implements api.Auditor.
func (k *keeper) Append(_ context.Context, r audit.Record) (string, error) {
	*k = keeper(r)
	return "", nil
}

func writeReplayed(w io.Writer, r audit.Record, out replayed) {
	fmt.Fprintf(w, "%s, %s by %s: %s\n", r.Time.Format(time.DateTime), r.Action, r.Principal, strings.TrimSpace(r.Question+" "+r.SQL))
	if out.Reproduced {
		fmt.Fprintf(w, "on the catalog and policy of that time it comes out the same: %s\n", out.Then.ending())
	} else {
		fmt.Fprintf(w, "on the catalog and policy of that time it does not come out the same: another release or a trained ranker answered it\n")
	}
	if out.Same {
		fmt.Fprintln(w, "today it is the same")
		return
	}
	fmt.Fprintln(w, "today it is not the same:")
	for _, why := range out.Why {
		fmt.Fprintf(w, "  %s\n", why)
	}
}
