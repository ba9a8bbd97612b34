package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

// The parts that a run can do without.
const (
	PartMetrics           = "metrics"
	PartRelationships     = "relationships" // and the foreign keys that they stand for
	PartQueries           = "queries"
	PartColumns           = "columns"            // as objects that are searched; they are still there to be found by their tables
	PartTableDescriptions = "table-descriptions" // and the tables' other names
	PartValues            = "values"
	PartJudge             = "judge"        // the learned ranker; sums of evidence rank instead
	PartVectors           = "vectors"      // and the lexicon and the scores of past questions, which are made of them; only words rank
	PartLexicon           = "lexicon"      // words are found where they stand, not where their meaning does
	PartValueSearch       = "value-search" // values are words of their columns, and no more
)

// Parts lists what Options.Ablate can name.
var Parts = [...]string{PartMetrics, PartRelationships, PartQueries, PartColumns, PartTableDescriptions, PartValues, PartJudge, PartVectors, PartLexicon, PartValueSearch}

// rankingParts are those of Parts that are in no catalog: they are for the searcher to do without.
var rankingParts = [...]string{PartJudge, PartVectors, PartLexicon, PartValueSearch}

// material is the catalog that is measured.
type material struct {
	snapshot *catalog.Snapshot
	names    names
	// asked are the past queries' dates; dated reports whether there are past queries and all have one.
	asked map[uint32]time.Time
	dated bool
}

// newMaterial builds the catalog of a set, with past queries and without what is ablated.
func newMaterial(ctx context.Context, set string, questions []ingest.Question, o Options, progress func(string)) (*material, error) {
	content, err := ingest.Bench{
		Dir: o.Bench, Set: set, NamesOnly: o.NamesOnly, DropDescriptions: o.DropDescriptions, Seed: schemaDropSeed,
	}.Read(ctx, progress)
	if err != nil {
		return nil, err
	}
	m := &material{names: newNames(content.Objects), asked: map[uint32]time.Time{}}
	var past []ingest.Question
	if o.History != "" {
		if past, err = m.history(ctx, set, questions, o, progress); err != nil {
			return nil, err
		}
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for _, q := range past {
		content.Objects = append(content.Objects, m.pastQuery(q, today))
	}
	if o.Ablate != "" && !slices.Contains(rankingParts[:], o.Ablate) {
		objects, found := without(content.Objects, o.Ablate)
		if !found {
			return nil, fmt.Errorf("%w: the catalog of %s holds no %s, so there is nothing to leave out", ErrSettings, set, o.Ablate)
		}
		content.Objects = objects
	}
	if m.snapshot, err = catalog.Build(content.Databases, content.Objects); err != nil {
		return nil, err
	}
	for _, q := range past {
		if id, ok := m.snapshot.ID(catalog.QueryRef(q.ID)); ok {
			m.asked[id] = q.Date
		}
	}
	m.dated = len(m.asked) > 0
	for _, at := range m.asked {
		m.dated = m.dated && !at.IsZero()
	}
	return m, nil
}

// history reads the past questions. A question counts only if both sets describe its database alike, since sets use one
// name for different databases. One that the set asks too, in the same words or with the same answer, is left out.
func (m *material) history(ctx context.Context, set string, asked []ingest.Question, o Options, progress func(string)) ([]ingest.Question, error) {
	if o.History == set {
		return nil, fmt.Errorf("%w: %s cannot be its own history, which would hold the answers; name another set over the same databases", ErrSettings, set)
	}
	progress("reading the history " + o.History)
	questions, err := ingest.Questions(o.Bench, o.History)
	if err != nil {
		return nil, err
	}
	content, err := ingest.Bench{Dir: o.Bench, Set: o.History, NamesOnly: true}.Read(ctx, progress)
	if err != nil {
		return nil, err
	}
	alike := m.names.alike(newNames(content.Objects))
	known := map[string]bool{}
	keys := func(q ingest.Question) []string {
		var out []string
		for _, text := range []string{q.Question, q.SQL} {
			if text != "" {
				out = append(out, strings.ToLower(q.DB+" "+strings.Join(strings.Fields(text), " ")))
			}
		}
		return out
	}
	for _, q := range asked {
		for _, k := range keys(q) {
			known[k] = true
		}
	}
	var out []ingest.Question
	elsewhere := 0
	for _, q := range questions {
		switch {
		case !alike[strings.ToLower(q.DB)]:
			elsewhere++
		case slices.ContainsFunc(keys(q), func(k string) bool { return known[k] }):
		case len(m.names.all(catalog.KindTable, q.DB, q.GoldTables)) > 0:
			out = append(out, q)
		}
	}
	switch {
	case elsewhere == len(questions):
		return nil, fmt.Errorf("%w: no question of %s is about a database of %s, so it is no history for it; name a set over the same databases", ErrSettings, o.History, set)
	case len(out) == 0:
		return nil, fmt.Errorf("%w: %s has no question with gold tables that %s does not ask itself; name another set over the same databases", ErrSettings, o.History, set)
	}
	return out, nil
}

// pastQuery makes a past query of a question: run twice, today.
func (m *material) pastQuery(q ingest.Question, today time.Time) catalog.Object {
	return catalog.Object{Ref: catalog.QueryRef(q.ID), Query: &catalog.Query{
		Question: q.Question, SQL: q.SQL, Count: 2, LastRun: today,
		Tables: m.names.all(catalog.KindTable, q.DB, q.GoldTables), Columns: m.names.all(catalog.KindColumn, q.DB, q.GoldColumns),
	}}
}

// before returns a view of the catalog without the past queries that were first asked at a time or later. What a view
// hides takes no part in the statistics either, so this is the catalog as it was.
func (m *material) before(at time.Time) acl.View {
	seen := roaring.New()
	seen.AddRange(0, uint64(m.snapshot.Len()))
	for id, asked := range m.asked {
		if !asked.Before(at) {
			seen.Remove(id)
		}
	}
	// The name tells the views apart.
	return acl.NewView(acl.Principal{Name: "before " + at.Format(time.RFC3339Nano)}, &acl.Compiled{
		Snapshot: m.snapshot, Raw: seen, Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: seen, acl.ActionQuery: seen},
	})
}

// without leaves a part out of objects, and reports whether there was any of it. Columns stay: what is not searched is
// for the searcher to know.
func without(objects []catalog.Object, part string) (rest []catalog.Object, found bool) {
	for _, o := range objects {
		gone := part == PartMetrics && o.Metric != nil || part == PartRelationships && o.Relationship != nil || part == PartQueries && o.Query != nil
		switch {
		case part == PartRelationships && o.Table != nil && len(o.Table.ForeignKeys) > 0:
			o.Table.ForeignKeys, found = nil, true
		case part == PartRelationships && o.Column != nil && len(o.Column.ForeignKeys) > 0:
			o.Column.ForeignKeys, found = nil, true
		case part == PartColumns && o.Column != nil:
			found = true
		case part == PartTableDescriptions && o.Table != nil && (o.Description != "" || len(o.Synonyms) > 0):
			o.Description, o.Synonyms, found = "", nil, true
		case part == PartValues && o.Column != nil && len(o.Column.Samples) > 0:
			o.Column.Samples, found = nil, true
		}
		if gone {
			found = true
			continue
		}
		rest = append(rest, o)
	}
	return rest, found
}

// names finds objects by the names that the question sets give them, without regard to case.
type names map[string]catalog.Ref

func newNames(objects []catalog.Object) names {
	n := names{}
	for _, o := range objects {
		if o.Table != nil || o.Column != nil {
			n[nameKey(o.Ref.Kind, o.Ref.Database, benchName(o.Ref))] = o.Ref
		}
	}
	return n
}

func nameKey(k catalog.Kind, database, name string) string {
	return strings.ToLower(k.String() + " " + database + " " + name)
}

// all returns the named objects of a database, each once. Names that nothing bears are left out.
func (n names) all(k catalog.Kind, database string, given []string) []catalog.Ref {
	var out []catalog.Ref
	for _, name := range given {
		if ref, ok := n[nameKey(k, database, name)]; ok && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// alike returns the databases, in lower case, that have the same tables and columns in both.
func (n names) alike(other names) map[string]bool {
	out := map[string]bool{}
	for _, pair := range [...][2]names{{n, other}, {other, n}} {
		for key, ref := range pair[0] {
			database := strings.ToLower(ref.Database)
			_, both := pair[1][key]
			was, seen := out[database]
			out[database] = both && (was || !seen)
		}
	}
	return out
}

// benchName writes a name as the question sets do.
func benchName(r catalog.Ref) string {
	return strings.Join(slices.DeleteFunc([]string{r.Schema, r.Table, r.Column}, func(s string) bool { return s == "" }), ".")
}
