package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/catalog"
)

// statementCase is a line of a batch. What it leaves out is as the flags say.
type statementCase struct {
	ID       json.RawMessage `json:"id"`
	SQL      string          `json:"sql"`
	As       string          `json:"as"`
	Person   string          `json:"on_behalf_of"`
	Dialect  string          `json:"dialect"`
	Database string          `json:"database"`
	DDL      string          `json:"ddl"`
	Setup    string          `json:"setup"`  // another word for ddl
	Policy   json.RawMessage `json:"policy"` // a policy, or a shortPolicy
}

// shortPolicy is a policy of one reader, who may see all that it does not take away. Names are table and table.column,
// with a schema before them where the dialect has schemas and another than the default is meant.
type shortPolicy struct {
	Rows        map[string]string `json:"rows"` // condition by table
	DenyTables  []string          `json:"deny_tables"`
	DenyColumns []string          `json:"deny_columns"`
	Masks       map[string]string `json:"masks"` // expression by column
}

// reader is the principal of a shortPolicy, if the case names none.
const reader = "reader"

// file writes the policy out, for a database of the catalog.
func (p shortPolicy) file(d catalog.Database, as string) ([]byte, error) {
	roles := []string{reader}
	var broken error
	whole := func(name string, parts int) string {
		path, err := catalog.SplitPath(name)
		if err != nil {
			broken = err
			return name
		}
		if d.DefaultSchema != "" && len(path) == parts {
			path = append([]string{d.DefaultSchema}, path...)
		}
		return catalog.JoinPath(append([]string{d.Name}, path...))
	}
	grants := []any{map[string]any{"role": reader, "allow": []string{"*"}, "actions": []acl.Action{acl.ActionView, acl.ActionQuery}}}
	var deny []string
	for _, t := range p.DenyTables {
		deny = append(deny, whole(t, 1))
	}
	for _, c := range p.DenyColumns {
		deny = append(deny, whole(c, 2))
	}
	if deny != nil {
		grants = append(grants, map[string]any{"role": reader, "deny": deny})
	}
	filters, masks := []any{}, []any{}
	for _, t := range slices.Sorted(maps.Keys(p.Rows)) {
		filters = append(filters, map[string]any{"table": whole(t, 1), "roles": roles, "using": p.Rows[t]})
	}
	for _, c := range slices.Sorted(maps.Keys(p.Masks)) {
		masks = append(masks, map[string]any{"column": whole(c, 2), "roles": roles, "with": map[string]any{"expression": p.Masks[c]}})
	}
	if broken != nil {
		return nil, broken
	}
	return json.Marshal(map[string]any{
		"version": 1, "principals": map[string]any{as: map[string]any{"roles": roles}},
		"grants": grants, "row_filters": filters, "masks": masks,
	})
}

// codeBadCase is the code of a case that cannot be tried: its schema or policy cannot be read, or says not who asks.
const codeBadCase = "bad-case"

// judged is a line of the answer.
type judged struct {
	ID json.RawMessage `json:"id"`
	api.Verdict
}

// batch guards one case a line and prints one verdict a line, in the same order. A case that cannot be tried is denied,
// and so is one on which the guard fails; only input that is not one JSON document a line ends the batch.
func (g *guarding) batch(ctx context.Context, in io.Reader, out io.Writer, auditor api.Auditor, progress func(string)) (allowed, denied int, err error) {
	lines := bufio.NewReaderSize(in, 1<<16)
	w := bufio.NewWriter(out)
	defer func() { err = errors.Join(err, w.Flush()) }()
	for n := 1; ; n++ {
		line, readErr := lines.ReadBytes('\n')
		if readErr != nil && readErr != io.EOF {
			return allowed, denied, fmt.Errorf("reading the cases: %w", readErr)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			var c statementCase
			if err := json.Unmarshal(line, &c); err != nil {
				return allowed, denied, usagef("line %d of the batch is not a JSON document of a case: %v", n, err)
			}
			v, err := g.try(ctx, c, auditor)
			if err != nil {
				return allowed, denied, err
			}
			if v.Decision == acl.Allow {
				allowed++
			} else {
				denied++
			}
			if c.ID == nil {
				c.ID = json.RawMessage(fmt.Sprint(n))
			}
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			if err := e.Encode(judged{c.ID, v}); err != nil {
				return allowed, denied, err
			}
			progress(fmt.Sprintf("%d statements guarded", n))
		}
		if readErr == io.EOF {
			return allowed, denied, nil
		}
	}
}

// try guards one case. The error is of the audit: nothing goes on without it.
func (g *guarding) try(ctx context.Context, c statementCase, auditor api.Auditor) (api.Verdict, error) {
	engine, database, as, err := g.engine(c, auditor)
	if err != nil {
		return api.Verdict{Decision: acl.Deny, Code: codeBadCase, Message: oneLine(err)}, nil
	}
	v, err := engine.Guard(ctx, api.Request{Face: "cli", Principal: as, OnBehalfOf: cmp.Or(c.Person, g.person)}, database, c.SQL)
	var fault *api.Fault
	if errors.As(err, &fault) {
		return api.Verdict{Decision: acl.Deny, Code: "failed", Message: fault.Error(), Record: fault.Record}, nil
	}
	return v, err
}

// guarding is what the statements of one command are checked against.
type guarding struct {
	dialect, database, as, person string

	snapshot *catalog.Snapshot // nil if each case describes its own
	policy   *acl.Policy       // nil if each case has its own
	shared   *casbin.Engine    // of the two, made when first needed
}

// engine makes the engine of a case.
func (g *guarding) engine(c statementCase, auditor api.Auditor) (_ *api.Engine, database, as string, err error) {
	as, database, s, p := cmp.Or(c.As, g.as), cmp.Or(c.Database, g.database), g.snapshot, g.policy
	own := false
	if ddl := c.DDL + c.Setup; ddl != "" {
		database = cmp.Or(database, defaultDatabase)
		if s, err = readDDL(cmp.Or(c.Dialect, g.dialect), database, "the case's schema", ddl); err != nil {
			return nil, "", "", err
		}
		own = true
	}
	if s == nil {
		return nil, "", "", errors.New("nothing describes the database; give the case a ddl, or the command a --ddl or --source")
	}
	if len(c.Policy) > 0 {
		data := []byte(c.Policy)
		var short shortPolicy
		if strict := json.NewDecoder(bytes.NewReader(data)); !bytes.Contains(data, []byte(`"version"`)) {
			strict.DisallowUnknownFields()
			if err := strict.Decode(&short); err != nil {
				return nil, "", "", fmt.Errorf("the case's policy: %w", err)
			}
			if as == "" {
				as = reader
			}
			d, ok := s.Database(database)
			if !ok {
				return nil, "", "", fmt.Errorf("the catalog holds no database %q", database)
			}
			if data, err = short.file(d, as); err != nil {
				return nil, "", "", fmt.Errorf("the case's policy: %w", err)
			}
		}
		if p, err = acl.ParsePolicy("the case's policy", data); err != nil {
			return nil, "", "", err
		}
		own = true
	}
	switch {
	case p == nil:
		return nil, "", "", errors.New("there is no policy; give the case one, or the command a --policy")
	case as == "":
		return nil, "", "", errors.New("it is not said who asks; give the case an as, or the command an --as")
	}
	policy := g.shared
	if own || policy == nil {
		if policy, err = casbin.New(p, s); err != nil {
			return nil, "", "", err
		}
	}
	if !own {
		g.shared = policy
	}
	return api.NewEngine(&api.Edition{Policy: policy}, guards(), nil, auditor, nil), database, as, nil
}

// defaultDatabase is the name of a database that CREATE statements describe.
const defaultDatabase = "db"
