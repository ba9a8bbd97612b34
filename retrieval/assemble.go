package retrieval

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/templates"
)

// The shares of the budget (Schema-First Retrieval, section 3.3), in the order in which they are spent: what a kind
// leaves over goes to the next, and columns, of which there are never enough, get the last of it.
const (
	joinBudget   = 0.05
	metricBudget = 0.10
	queryBudget  = 0.20
	tableBudget  = 0.30
	columnBudget = 0.35
)

// assemble renders a selection within the budget.
func (l *Linker) assemble(out Context, sel selection, v acl.View) (Context, error) {
	s := v.Snapshot()
	left := 0.0
	spend := func(share float64) { left += share * float64(l.config.Budget) }
	afford := func(text string) bool {
		cost := float64(l.counter.Tokens(text))
		if cost > left {
			return false
		}
		left -= cost
		return true
	}
	dialect := func(o *catalog.Object) catalog.Dialect {
		d, _ := s.Database(o.Names()[0].Database)
		return d.Dialect
	}
	shown := func(r catalog.Ref) bool {
		id, ok := s.ID(r)
		return ok && v.Queryable(id)
	}

	spend(joinBudget)
	var joinText strings.Builder
	for _, j := range sel.joins {
		o, ok := v.Object(j.Relationship)
		if !ok {
			continue
		}
		text, err := templates.Join(dialect(&o), &o, s.Object(j.To).Ref)
		if err != nil {
			return Context{}, fmt.Errorf("retrieval: context: %w", err)
		}
		if !afford(text) {
			break
		}
		joinText.WriteString(text)
		from, to := o.Relationship.From, o.Relationship.To
		if to[0].TableRef() != s.Object(j.To).Ref {
			from, to = to, from
		}
		out.Joins = append(out.Joins, Join{ID: j.Relationship, Ref: o.Ref, From: from, To: to, Cardinality: j.Cardinality})
	}

	render := func(list []Scored, f func(catalog.Dialect, *catalog.Object) (string, error)) (string, []Item, error) {
		var b strings.Builder
		var items []Item
		for _, x := range list {
			o, ok := v.Object(x.ID)
			if !ok {
				continue
			}
			text, err := f(dialect(&o), &o)
			if err != nil {
				return "", nil, fmt.Errorf("retrieval: context: %w", err)
			}
			if !afford(text) {
				break
			}
			b.WriteString(text)
			items = append(items, Item{x.ID, o.Ref, round(x.Score), reason(s, x.ID, x.Evidence)})
		}
		return b.String(), items, nil
	}
	spend(metricBudget)
	metricText, metrics, err := render(sel.metrics, templates.Metric)
	if err != nil {
		return Context{}, err
	}
	spend(queryBudget)
	queryText, queries, err := render(sel.queries, templates.Query)
	if err != nil {
		return Context{}, err
	}

	// Tables come with the columns that joins and metrics need, then further columns fill what is left.
	spend(tableBudget)
	type open struct {
		table   catalog.Object
		scored  Scored
		dialect catalog.Dialect
		columns []*catalog.Object
		items   []Item
	}
	ddl := func(t *open, extra ...*catalog.Object) (string, error) {
		columns := slices.Concat(t.columns, extra)
		slices.SortFunc(columns, func(a, b *catalog.Object) int { return a.Column.Position - b.Column.Position })
		return templates.DDL(t.dialect, &t.table, columns, shown)
	}
	var tables []*open
	for _, x := range sel.tables {
		o, ok := v.Object(x.ID)
		if !ok {
			continue
		}
		t := &open{table: o, scored: x, dialect: dialect(&o)}
		r := s.ColumnIDs(x.ID)
		for id := r.From; id < r.To; id++ {
			why := sel.needed[id]
			if why == "" || !v.Queryable(id) {
				continue
			}
			c, _ := v.Object(id)
			t.columns = append(t.columns, &c)
			t.items = append(t.items, Item{ID: id, Ref: c.Ref, Reason: why})
		}
		text, err := ddl(t)
		if err != nil {
			return Context{}, fmt.Errorf("retrieval: context: %w", err)
		}
		if !afford(text) {
			break
		}
		tables = append(tables, t)
	}
	spend(columnBudget)
	for _, t := range tables {
		empty, err := ddl(t)
		if err != nil {
			return Context{}, fmt.Errorf("retrieval: context: %w", err)
		}
		base := l.counter.Tokens(empty)
		for _, x := range sel.columns[t.scored.ID] {
			at := slices.IndexFunc(t.items, func(it Item) bool { return it.ID == x.ID })
			why := reason(s, x.ID, x.Evidence)
			if at >= 0 {
				t.items[at].Score = round(x.Score)
				if why != "" {
					t.items[at].Reason = why + "; " + t.items[at].Reason
				}
				continue
			}
			c, ok := v.Object(x.ID)
			if !ok {
				continue
			}
			text, err := ddl(t, &c)
			if err != nil {
				return Context{}, fmt.Errorf("retrieval: context: %w", err)
			}
			size := l.counter.Tokens(text)
			if cost := float64(size - base); cost > left {
				break
			} else {
				left -= cost
			}
			base = size
			if why == "" {
				why = "stands in " + t.table.Ref.String()
			}
			t.columns = append(t.columns, &c)
			t.items = append(t.items, Item{x.ID, c.Ref, round(x.Score), why})
		}
	}

	out.Items = metrics
	var text strings.Builder
	for _, t := range tables {
		if len(t.columns) == 0 {
			continue // no column of it was worth its place
		}
		out.Items = append(out.Items, Item{t.scored.ID, t.table.Ref, round(t.scored.Score), reason(s, t.scored.ID, t.scored.Evidence)})
		slices.SortStableFunc(t.items, func(a, b Item) int { return compareScores(b.Score, a.Score) })
		out.Items = append(out.Items, t.items...)
		part, err := ddl(t)
		if err != nil {
			return Context{}, fmt.Errorf("retrieval: context: %w", err)
		}
		text.WriteString(part)
		text.WriteByte('\n')
	}
	out.Items = append(out.Items, queries...)
	for _, part := range []string{joinText.String(), metricText, queryText} {
		if part != "" {
			text.WriteString(part)
			text.WriteByte('\n')
		}
	}
	out.Text = strings.TrimRight(text.String(), "\n") + "\n"
	out.Tokens = l.counter.Tokens(out.Text)
	return out, nil
}

func compareScores(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
