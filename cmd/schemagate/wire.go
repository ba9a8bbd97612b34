package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/api/execute"
	"github.com/schemagate/schemagate/api/generate"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/catalog/store"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/embed"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/mysql"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/sqlite"
	"github.com/schemagate/schemagate/rewrite/tsql"
	"github.com/schemagate/schemagate/templates"
)

// dialect is a dialect with a guard and a reader of CREATE statements.
type dialect interface {
	rewrite.Dialect
	Objects(database, ddl string) (catalog.Database, []catalog.Object, error)
}

func dialects() []dialect {
	return append([]dialect{mysql.New(), postgres.New(), sqlite.New(), tsql.New()}, tagged()...)
}

// dialectNames returns the names of the dialects that have a guard, sorted.
func dialectNames() []string {
	var names []string
	for _, d := range dialects() {
		names = append(names, string(d.Name()))
	}
	slices.Sort(names)
	return names
}

func guards() []*rewrite.Guard {
	var out []*rewrite.Guard
	for _, d := range dialects() {
		out = append(out, rewrite.NewGuard(d, 0))
	}
	return out
}

// options are the flags that the commands about one question share.
type options struct {
	sources []string
	store   string
	policy  string
	as      string
	person  string // that the asker acts for
	audit   string
	redact  string
	json    bool
	// These are of questions alone.
	strategy, ranker string
}

func (o *options) sourceFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.sources, "source", nil, "where the catalog comes from: sqlite:FILE, sqlite:FOLDER, postgres://..., mysql://..., bench:DIR/SET, yaml:FILE; may be repeated")
	f.StringVar(&o.store, "store", "", "catalog store that ingest filled, used if no source is given (default in the user's state directory)")
}

func (o *options) askerFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.policy, "policy", "", "policy file (default the policy in force in the catalog store)")
	f.StringVar(&o.as, "as", "", "principal who asks")
	f.StringVar(&o.person, "on-behalf-of", "", "person that the principal, a service account, asks for")
	f.StringVar(&o.audit, "audit", "", "audit log to append to (default in the user's state directory)")
	f.StringVar(&o.redact, "redact", "", "key file; the audit log keeps keyed hashes of the literals in questions and statements instead of them")
	f.BoolVar(&o.json, "json", false, "print one JSON document")
}

func (o *options) questionFlags(c *cobra.Command) {
	c.Flags().StringVar(&o.ranker, "ranker", "", "file with a ranker that schemagate train made (default the one that ships); it serves those who may see all that it learned from")
	c.Flags().StringVar(&o.strategy, "strategy", "", "how to choose the context: whole, tables or retrieval (default by the size of what the principal may see)")
}

func (o *options) requireAsker() error {
	if o.as == "" {
		return usagef("it is not said who asks; name a principal of the policy with --as NAME")
	}
	return nil
}

// stateFile returns the default place of a file that outlives a command.
func stateFile(given, name string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no state directory: %w; set XDG_STATE_HOME", err)
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "schemagate", name), nil
}

// catalog reads the catalog from the sources, or from the store if none is given, and returns the sources that
// statements can be run against, by database.
func (o *options) catalog(ctx context.Context, progress func(string)) (*catalog.Snapshot, map[string]ingest.Live, error) {
	if len(o.sources) > 0 {
		// What can be told without connecting is a fault of the command line or of a file that it names.
		for _, spec := range o.sources {
			if _, err := ingest.Open(spec); err != nil {
				return nil, nil, usageError{err}
			}
		}
		s, live, err := ingest.LoadLive(ctx, o.sources, progress)
		if err != nil {
			return nil, nil, err
		}
		s, err = derived(s)
		return s, live, err
	}
	path, err := stateFile(o.store, "catalog.db")
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, nil, usagef("no source is given and there is no catalog store at %s; name a source with --source, or fill the store with schemagate ingest", path)
	}
	s, err := store.Open(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	snapshot, _, err := s.Latest(ctx)
	if errors.Is(err, store.ErrEmpty) {
		return nil, nil, usagef("the catalog store %s is empty; fill it with schemagate ingest", path)
	}
	return snapshot, nil, err
}

// derived is the catalog with the column lineage of its SQL views.
func derived(s *catalog.Snapshot) (*catalog.Snapshot, error) {
	from, _ := rewrite.Derivations(s, guards())
	return catalog.Derive(s, from)
}

// thePolicy reads the policy file that was named, or the policy that is in force in the catalog store.
func (o *options) thePolicy(ctx context.Context) (*acl.Policy, error) {
	if o.policy != "" {
		return readPolicy(o.policy)
	}
	none := usagef("no policy is given; name one with --policy FILE, or put one in force with schemagate policy put FILE")
	path, err := stateFile(o.store, "catalog.db")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, none
	}
	p, _, err := o.storedPolicy(ctx, "")
	if errors.Is(err, store.ErrNoPolicy) {
		return nil, none
	}
	return p, err
}

func readPolicy(path string) (*acl.Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("policy: %w", err)}
	}
	p, err := parsePolicy(path, data)
	if err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// casbinStart is how a Casbin policy begins, behind comments, and no policy of ours does.
var casbinStart = regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*[pg][ \t]*,`)

// parsePolicy reads a policy, one of ours or one in Casbin's CSV.
func parsePolicy(name string, data []byte) (*acl.Policy, error) {
	if casbinStart.Match(data) {
		return acl.ParseCSV(name, data)
	}
	return acl.ParsePolicy(name, data)
}

// edition builds all that a question needs of one catalog under one policy, and the generator that goes with it.
func edition(ctx context.Context, s *catalog.Snapshot, p *acl.Policy, trained string) (*api.Edition, api.Generator, error) {
	engine, err := casbin.New(p, s)
	if err != nil {
		return nil, nil, err
	}
	ranker, err := newRanker(ctx, s, trained)
	if err != nil {
		return nil, nil, err
	}
	linker, err := retrieval.NewLinker(ranker, lineage.New(s), templates.NewCounter(), retrieval.DefaultConfig)
	if err != nil {
		return nil, nil, err
	}
	return &api.Edition{Policy: api.CacheViews(engine), Linker: retrieval.NewCachedLinker(linker)}, generate.NewMetrics(time.Now), nil
}

// newRanker makes the embedded ranker of a catalog, with the judge that the binary carries or one that was trained.
func newRanker(ctx context.Context, s *catalog.Snapshot, trained string) (*retrieval.Ranker, error) {
	e, err := embed.New()
	if err != nil {
		return nil, err
	}
	r, err := local.NewRanker(ctx, s, e)
	if err != nil {
		return nil, err
	}
	m, err := rank.Shipped()
	if err != nil {
		return nil, err
	}
	if trained == "" {
		r.Judge = rank.New(m, s)
		return r, nil
	}
	data, err := os.ReadFile(trained)
	if err != nil {
		return nil, usageError{fmt.Errorf("ranker: %w", err)}
	}
	var t rank.Trained
	if err := t.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("%s: %w", trained, err)
	}
	own := rank.Deploy(&t, m, s)
	if own.Gone() > 0 {
		slog.Default().Warn("the trained ranker serves nobody until it is trained again: objects that it learned from are gone", "file", trained)
	}
	r.Judge = own
	return r, nil
}

// runners connects to the live sources, for running statements in the databases that they hold. close must be called.
func runners(ctx context.Context, sources map[string]ingest.Live) (_ map[string]api.Runner, close func(), err error) {
	out := map[string]api.Runner{}
	bySource := map[ingest.Live]api.Runner{}
	var open []*sql.DB
	close = func() {
		for _, db := range open {
			db.Close()
		}
	}
	defer func() {
		if err != nil {
			close()
		}
	}()
	for database, live := range sources {
		if bySource[live] == nil {
			db, err := live.DB(ctx)
			if err != nil {
				return nil, nil, err
			}
			open = append(open, db)
			if bySource[live], err = execute.New(db, live.Dialect(), execute.Config{HashKey: os.Getenv("SCHEMAGATE_HASH_KEY")}); err != nil {
				return nil, nil, err
			}
		}
		out[database] = bySource[live]
	}
	return out, close, nil
}

// engine wires everything for one command; with run, statements can be executed. close must be called.
func (o *options) engine(ctx context.Context, progress func(string), run bool) (_ *api.Engine, close func(), err error) {
	p, err := o.thePolicy(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, sources, err := o.catalog(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	e, g, err := edition(ctx, s, p, o.ranker)
	if err != nil {
		return nil, nil, err
	}
	log, err := o.openAudit(ctx)
	if err != nil {
		return nil, nil, err
	}
	var rs map[string]api.Runner
	stop := func() {}
	if run {
		if rs, stop, err = runners(ctx, sources); err != nil {
			log.Close()
			return nil, nil, err
		}
	}
	return api.NewEngine(e, guards(), g, log, rs), func() { stop(); log.Close() }, nil
}

func (o *options) openAudit(ctx context.Context) (*audit.Log, error) {
	path, err := stateFile(o.audit, "audit.jsonl")
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(ctx, path, slog.Default())
	if err != nil || o.redact == "" {
		return log, err
	}
	redactor, err := audit.OpenRedactor(o.redact)
	if err != nil {
		log.Close()
		return nil, err
	}
	log.Redact = redactor.Redact
	return log, nil
}

// progress tells on w what is going on, once it has gone on for two seconds and then at most once a second.
func progress(w io.Writer) func(string) {
	next := time.Now().Add(2 * time.Second)
	return func(what string) {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			fmt.Fprintln(w, "… "+what)
		}
	}
}

// printJSON writes one document.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
