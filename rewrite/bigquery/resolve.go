//go:build bigquery

package bigquery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Resolve has the analyzer bind the statement over the tables that its FROMs can mean and that the principal may query.
func (t *tree) Resolve(s *rewrite.Schema) (rewrite.Reading, error) {
	t.binder = &binder{schema: s, engine: t.engine}
	b := t.binder
	n, err := t.engine.names()
	if err != nil {
		return rewrite.Reading{}, err
	}
	paths := tablePaths(t.query)
	for _, at := range paths {
		if err := b.offer(n, at.child("PathExpression").path()); err != nil {
			return rewrite.Reading{}, err
		}
	}
	r, err := n.analyze(t.sql)
	if err != nil {
		if b.withheld != nil {
			return rewrite.Reading{}, b.withheld // a table that a condition of the policy keeps from the principal
		}
		return rewrite.Reading{}, b.explain(err, paths)
	}
	defer r.done()
	reader, err := readStatement(r, t.query)
	if err != nil {
		return rewrite.Reading{}, err
	}
	for _, m := range reader.scans {
		i := slices.IndexFunc(paths, func(p *node) bool { return p.child("PathExpression").start == m.at })
		if i < 0 {
			return rewrite.Reading{}, fmt.Errorf("a table is read at byte %d, where no name stands", m.at)
		}
		said := paths[i].child("PathExpression").path()
		if ref, ok := b.ref(said); !ok || ref != m.table.Ref {
			// GoogleSQL found it without regard to letter case; BigQuery would not.
			return rewrite.Reading{}, b.absent(said)
		}
		if m.table.SQLView != "" {
			return rewrite.Reading{}, notSupported(paths[i], strings.Join(said, ".")+" is a view, which is not supported", "read the tables beneath it")
		}
		if m.table.Part {
			return rewrite.Reading{}, notSupported(paths[i], strings.Join(said, ".")+" is a part of another table", "read the whole table")
		}
		t.bound = append(t.bound, boundTable{paths[i], m.table})
	}
	slices.SortFunc(t.bound, func(a, b boundTable) int { return a.at.start - b.at.start })
	for _, m := range reader.mentions {
		if c := m.column; c != nil && c.Mask != nil && c.Mask.Kind == acl.MaskHash {
			return rewrite.Reading{}, &acl.Refusal{
				Code:   acl.CodeMaskUnsupported,
				Public: fmt.Sprintf("%s may only be seen through a mask that BigQuery cannot compute", c.Name),
				Hint:   "leave the column out",
				Detail: fmt.Sprintf("mask %s of %s", c.Mask.Kind, c.Ref),
			}
		}
	}
	if reader.risky != nil {
		return rewrite.Reading{}, reader.risky
	}
	t.barred = reader.barred
	if err := t.qualify(r.meaning); err != nil {
		return rewrite.Reading{}, err
	}
	t.meaning = r.meaning
	return reader.reading(), nil
}

// qualify tries the statement with every base table by its whole name: where an alias or a column is called like the
// project, the same name could mean the field of a row.
func (t *tree) qualify(meaning string) error {
	n, err := t.engine.names()
	if err != nil {
		return err
	}
	var edits []edit
	for _, at := range t.bound {
		path := fullPath(at.table.Ref)
		if err := t.binder.put(n, path, at.table); err != nil {
			return err
		}
		p := at.at.child("PathExpression")
		edits = append(edits, edit{p.start, p.end, quotePath(path) + implicitAlias(at.at)})
	}
	again, err := n.analyze(apply(t.sql, edits))
	if err == nil {
		defer again.done()
		if again.meaning == meaning {
			return nil
		}
	} else if no := (*acl.Refusal)(nil); !errors.As(err, &no) {
		return err
	}
	return &acl.Refusal{
		Code:   acl.CodeNotSupported,
		Public: "a name in the statement could also be that of a project or dataset",
		Hint:   "choose other aliases than the names of projects and datasets",
		Detail: "the statement changes its meaning when its tables are written by their whole names",
	}
}

// tablePaths returns the FROM items that are names, in the order of the text.
func tablePaths(root *node) []*node {
	var out []*node
	root.walk(func(n *node) bool {
		if n.kind == "TablePathExpression" && n.child("PathExpression") != nil {
			out = append(out, n)
		}
		return true
	})
	return out
}

// implicitAlias writes out the name that an item without an alias goes by.
func implicitAlias(at *node) string {
	if at.child("Alias") != nil {
		return ""
	}
	path := at.child("PathExpression").path()
	return " AS " + quote(path[len(path)-1])
}

func fullPath(r catalog.Ref) []string { return []string{r.Database, r.Schema, r.Table} }

// binder says which tables the names of a statement mean.
type binder struct {
	schema   *rewrite.Schema
	engine   *engine
	withheld error // why a table that was named is kept back
	wrappers []*wrapper
}

// ref completes the name of a table: the project is the schema's own where none is written, and the dataset is the only
// one that the principal sees, if it is the only one.
func (b *binder) ref(path []string) (catalog.Ref, bool) {
	switch len(path) {
	case 3:
		return catalog.TableRef(path[0], path[1], path[2]), true
	case 2:
		return catalog.TableRef(b.schema.Database().Name, path[0], path[1]), true
	case 1:
		if datasets := b.schema.Schemas(); len(datasets) == 1 {
			return catalog.TableRef(b.schema.Database().Name, datasets[0], path[0]), true
		}
	}
	return catalog.Ref{}, false
}

// offer adds the table that a path can mean, if there is one that the principal may query. The path may turn out to mean
// a CTE or an array of another item.
func (b *binder) offer(n *names, path []string) error {
	ref, ok := b.ref(path)
	if !ok {
		return nil
	}
	t, ok, err := b.schema.Table(ref)
	if err != nil {
		b.withheld = cmp.Or(b.withheld, err)
		return nil
	}
	if !ok {
		return nil
	}
	return b.put(n, path, t)
}

func (b *binder) put(n *names, path []string, t *rewrite.Table) error {
	w, err := b.wrapper(t)
	if err != nil {
		return err
	}
	columns, err := w.shapes(n)
	if err != nil {
		return err
	}
	fits, err := n.add(path, t, columns)
	if err == nil && !fits {
		return &acl.Refusal{
			Code:   acl.CodeNotSupported,
			Public: fmt.Sprintf("the statement names two tables that differ in letter case only: %s", strings.Join(path, ".")),
			Hint:   "read one of them at a time",
		}
	}
	return err
}

// explain adds to a refusal, for the audit, whether what it names is hidden or absent.
func (b *binder) explain(err error, paths []*node) error {
	var no *acl.Refusal
	if !errors.As(err, &no) || no.Code != acl.CodeNotAvailable {
		return err
	}
	said, _ := strings.CutSuffix(no.Public, " is not available to you")
	detail := []string{no.Detail}
	for _, p := range paths {
		path := p.child("PathExpression").path()
		ref, ok := b.ref(path)
		if !ok {
			continue
		}
		if _, ok, err := b.schema.Table(ref); err == nil && !ok {
			if strings.Join(path, ".") == said {
				detail = append(detail, b.schema.Absence(ref))
			}
			continue
		}
		column := said[strings.LastIndexByte(said, '.')+1:]
		detail = append(detail, b.schema.Absence(catalog.ColumnRef(ref.Database, ref.Schema, ref.Table, column)))
	}
	return acl.NotAvailable(said, strings.Join(detail, "; "))
}

func (b *binder) absent(path []string) error {
	detail := "no table of that name"
	if ref, ok := b.ref(path); ok {
		detail = b.schema.Absence(ref)
	}
	return acl.NotAvailable(strings.Join(path, "."), detail)
}
