package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/audit"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/rank"
	"github.com/schemagate/schemagate/rewrite"
)

// questionLog gathers answered questions from which a view may learn.
type questionLog struct {
	view     acl.View
	examples []rank.Example
	read     map[string]int
	skipped  map[string]int
	known    map[string]bool
}

// Where questions stand.
const (
	fromCatalog = "past queries"
	fromAudit   = "audit records"
	fromFile    = "lines of files"
)

// Why a question is no example.
const (
	notKnown  = "of objects that the catalog lacks"
	notSeen   = "of what may not be seen"
	notSQL    = "with SQL that cannot be read"
	notWords  = "without words"
	notNew    = "asked and answered alike before"
	mostBytes = 1 << 20 // of a line
)

func readQuestionLog(ctx context.Context, v acl.View, files []string, auditLog string, say func(string)) (*questionLog, error) {
	l := &questionLog{view: v, read: map[string]int{}, skipped: map[string]int{}, known: map[string]bool{}}
	for i := range v.Snapshot().Objects(catalog.KindQuery) {
		o := &v.Snapshot().Objects(catalog.KindQuery)[i]
		l.read[fromCatalog]++
		l.add(o.Query.Question, o.Query.Tables, slices.Concat(o.Query.Columns, o.Query.Filters))
	}
	for _, file := range files {
		say("reading " + file)
		if err := l.file(file); err != nil {
			return nil, err
		}
	}
	if auditLog != "" {
		say("reading " + auditLog)
		if err := l.audit(ctx, auditLog); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *questionLog) total() (n int) {
	for _, x := range l.read {
		n += x
	}
	return n
}

// add makes an example of a question unless it is of no use.
func (l *questionLog) add(question string, tables, columns []catalog.Ref) {
	s := l.view.Snapshot()
	e := rank.Example{Question: question, Group: likeness(question), Tables: map[uint32]bool{}, Columns: map[uint32]bool{}}
	for _, list := range []struct {
		refs []catalog.Ref
		into map[uint32]bool
	}{{tables, e.Tables}, {columns, e.Columns}} {
		for _, r := range list.refs {
			id, ok := s.ID(r)
			switch {
			case !ok:
				l.skipped[notKnown]++
				return
			case !l.view.Queryable(id) || !l.view.Raw(id):
				// The text of a question comes from whoever saw rows.
				l.skipped[notSeen]++
				return
			}
			list.into[id] = true
		}
	}
	key := fmt.Sprintf("%q %v %v", strings.Join(strings.Fields(question), " "), e.Tables, e.Columns)
	switch {
	case len(e.Tables) == 0:
		l.skipped[notKnown]++
	case len(retrieval.Terms(question)) == 0:
		l.skipped[notWords]++
	case l.known[key]:
		l.skipped[notNew]++
	default:
		l.known[key] = true
		e.Database = tables[0].Database
		l.examples = append(l.examples, e)
	}
}

// file reads a question a line.
func (l *questionLog) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, mostBytes)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var q struct {
			Question string
			Database string
			Tables   []string
			Columns  []string
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return usagef("%s:%d: %w", path, n, err)
		}
		if q.Question == "" || q.Database == "" || len(q.Tables) == 0 {
			return usagef("%s:%d: a line needs a question, a database and tables", path, n)
		}
		l.read[fromFile]++
		tables, ok := l.find(catalog.KindTable, q.Database, q.Tables)
		columns, ok2 := l.find(catalog.KindColumn, q.Database, q.Columns)
		if !ok || !ok2 {
			l.skipped[notKnown]++
			continue
		}
		l.add(q.Question, tables, columns)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// find resolves names of a database's objects, which may leave out the database and the default schema.
func (l *questionLog) find(k catalog.Kind, database string, names []string) (refs []catalog.Ref, ok bool) {
	s := l.view.Snapshot()
	d, _ := s.Database(database)
	for _, name := range names {
		path, err := catalog.SplitPath(name)
		if err != nil {
			return nil, false
		}
		found := false
		for _, full := range [...][]string{slices.Concat([]string{database}, path), slices.Concat([]string{database, d.DefaultSchema}, path), path} {
			objects, err := s.Resolve(catalog.JoinPath(full))
			if err != nil {
				continue
			}
			at := slices.IndexFunc(objects, func(o *catalog.Object) bool { return o.Ref.Kind == k && o.Ref.Database == database })
			if at >= 0 {
				refs, found = append(refs, objects[at].Ref), true
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return refs, true
}

// audit reads the answered questions of an audit log. A record says what was shown, not what was of use; that is read
// from the statement that answered.
func (l *questionLog) audit(ctx context.Context, path string) error {
	all := acl.Everything(l.view.Snapshot())
	for r, err := range audit.List(ctx, path, audit.Filter{Outcome: audit.Answered}) {
		if err != nil {
			return err
		}
		if r.Action != "ask" || r.Question == "" || r.SQL == "" {
			continue
		}
		l.read[fromAudit]++
		reads, ok := readsOf(all, r)
		if !ok {
			l.skipped[notSQL]++
			continue
		}
		var tables, columns []catalog.Ref
		for _, read := range reads {
			tables, columns = append(tables, read.Table), append(columns, read.Columns...)
		}
		l.add(r.Question, tables, columns)
	}
	return nil
}

// readsOf reads the statement of a record against the catalog as it is now.
func readsOf(all acl.View, r audit.Record) ([]rewrite.Read, bool) {
	for _, ref := range r.Returned {
		objects, err := all.Snapshot().Resolve(ref)
		if err != nil || len(objects) == 0 || objects[0].Ref.Database == "" {
			continue
		}
		schema, err := rewrite.NewSchema(all, objects[0].Ref.Database)
		if err != nil {
			return nil, false
		}
		for _, g := range guards() {
			if g.Dialect() == schema.Dialect() {
				st, err := g.Rewrite(r.SQL, schema)
				return st.Reads(), err == nil && len(st.Reads()) > 0
			}
		}
		return nil, false
	}
	return nil, false
}

// likeness is the same for questions of the same words, whatever their order, numbers and quoted values.
func likeness(question string) string {
	var unquoted strings.Builder
	for i, part := range strings.Split(question, `"`) {
		if i%2 == 0 {
			unquoted.WriteString(part + " ")
		}
	}
	var words []string
	terms, _ := retrieval.QuestionTerms(unquoted.String())
	for _, t := range terms {
		if strings.ContainsFunc(t.Text, unicode.IsLetter) {
			words = append(words, t.Text)
		}
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// heldOutOf is the part of the questions that is held out: one of so many.
const heldOutOf = 4

func heldOut(group string) bool {
	return sha256.Sum256([]byte(group))[0]%heldOutOf == 0
}

// withoutQueries is a view without past queries.
func withoutQueries(v acl.View) acl.View {
	s := v.Snapshot()
	seen, raw := v.Queryables(), roaring.New()
	queries := s.OfKind(catalog.KindQuery)
	seen.RemoveRange(uint64(queries.From), uint64(queries.To))
	for it := seen.Iterator(); it.HasNext(); {
		if id := it.Next(); v.Raw(id) {
			raw.Add(id)
		}
	}
	// The name tells it from the view itself.
	return acl.NewView(acl.Principal{Name: "training as " + v.Principal().Name}, &acl.Compiled{
		Roles: v.Roles(), Policy: v.Policy(), Snapshot: s, Raw: raw,
		Allowed: map[acl.Action]*roaring.Bitmap{acl.ActionView: seen, acl.ActionQuery: seen},
	})
}
