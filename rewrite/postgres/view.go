package postgres

import (
	"errors"
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
)

// A statement reads a SQL view by its definition, with the asker's rights: what the definition reads is governed as if
// the asker had written it, and around it stand the view's own columns, masks and row filter. Names in it mean what
// they mean where the view is, and no name of the statement reaches it.

const (
	// maxViews bounds how many views may read each other on top of one another.
	maxViews = 32
	// maxExpansions bounds how many definitions one statement may need.
	maxExpansions = 500
)

// expansion is a SQL view's definition at one place of a statement.
type expansion struct {
	body    *pg.SelectStmt
	columns []column // that it returns
}

func (e *expansion) column(name string) *column {
	if i := slices.IndexFunc(e.columns, func(c column) bool { return c.name == name }); i >= 0 {
		return &e.columns[i]
	}
	return nil
}

// view resolves the definition of the SQL view that u mentions. A refusal speaks of the view that the asker named.
func (r *resolver) view(u *use) error {
	err := r.define(u)
	var no *acl.Refusal
	if !errors.As(err, &no) {
		return err
	}
	detail := fmt.Sprintf("in the SQL view %s: %s (%s)", u.ref, no.Public, no.Detail)
	switch no.Code {
	case acl.CodeMissingAttribute:
		return no
	case acl.CodeNotAvailable, acl.CodeAmbiguous:
		return acl.NotAvailable(u.name, detail)
	}
	return notSupported(fmt.Sprintf("%s is a SQL view whose definition is not supported", u.name), "query the tables that it reads", detail)
}

func (r *resolver) define(u *use) error {
	switch {
	case slices.Contains(r.views, u.ref):
		return notSupported("it reads itself", "", "")
	case len(r.views) == maxViews || r.expansions == maxExpansions:
		return notSupported("it reads too many views", "", fmt.Sprintf("%d on top of each other, %d in all", len(r.views), r.expansions))
	}
	body, err := r.fragments.query(u.table.SQLView)
	if err != nil {
		return err
	}
	c := checker{}
	if no := c.check(body); no != nil {
		return no
	}
	aliases, within := r.aliases, r.within
	if within == "" {
		r.within = u.name
	}
	r.aliases = map[string]bool{u.ref.Table: true}
	r.views = append(r.views, u.ref)
	r.expansions++
	columns, err := r.query(body, nil, nil)
	r.aliases, r.within, r.views = aliases, within, r.views[:len(r.views)-1]
	if err != nil {
		return err
	}
	u.view = &expansion{body, columns}
	it := u.item
	it.columns = slices.DeleteFunc(it.columns, func(c column) bool { return u.view.column(c.name) == nil })
	for i := range it.columns {
		made := u.view.column(it.columns[i].name).made
		if masked(u.table, it.columns[i].name) {
			made = &source{from: []*source{made}} // no longer of the base column's type
		}
		it.columns[i].made = made
	}
	return nil
}

// masked reports whether the principal sees a column's values changed.
func masked(t *rewrite.Table, name string) bool {
	return slices.ContainsFunc(t.Columns, func(c rewrite.Column) bool { return c.Name == name && c.Mask != nil })
}

// definitions lists the bodies of the SQL views that a statement reads.
func (r *resolver) definitions() []*pg.SelectStmt {
	var out []*pg.SelectStmt
	for _, u := range r.uses {
		if u.view != nil {
			out = append(out, u.view.body)
		}
	}
	return out
}

// policiesCanFail reports whether the policy of a SQL view holds an expression that could fail on a row of the tables
// below.
func (r *resolver) policiesCanFail(s *rewrite.Schema) (bool, error) {
	for _, u := range r.uses {
		if u.view == nil {
			continue
		}
		p := policySQL{schema: s, fragments: r.fragments, use: u}
		if _, err := p.filter(u.table); err != nil {
			return false, err
		}
		for _, c := range u.table.Columns {
			if u.view.column(c.Name) == nil {
				continue
			}
			if _, err := p.column(c); err != nil {
				return false, err
			}
		}
		if p.risky || p.riskyFilter {
			return true, nil
		}
	}
	return false, nil
}
