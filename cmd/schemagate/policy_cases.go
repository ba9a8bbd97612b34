package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/api"
	"github.com/schemagate/schemagate/rewrite"
)

// policyCase is a decision that a policy is expected to make: on an object, or on a statement.
type policyCase struct {
	Name   string   `yaml:"name"`
	As     string   `yaml:"as"`
	Expect string   `yaml:"expect"` // allow or deny
	Ref    string   `yaml:"ref"`
	Action string   `yaml:"action"` // query unless said
	Mask   *string  `yaml:"mask"`   // kind of the mask on a column, none if it reads as it is
	Where  *string  `yaml:"where"`  // the condition on the rows of a table, none if all are seen
	SQL    string   `yaml:"sql"`
	In     string   `yaml:"database"` // that the statement runs in; the only one unless said
	Code   string   `yaml:"code"`     // of the refusal
	Rows   *[][]any `yaml:"rows"`     // of the governed statement, in any order
}

func (c policyCase) title(n int) string {
	if c.Name != "" {
		return c.Name
	}
	return fmt.Sprintf("case %d: %s, %s", n+1, c.As, c.Ref+strings.Join(strings.Fields(c.SQL), " "))
}

// caseResult is a case that came out otherwise.
type caseResult struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

func policyTestCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "test CASES.yaml",
		Short: "Check that a policy decides as a file of cases expects",
		Long: `Check a policy against expected decisions. Exit code 4 means that one came out otherwise. A case names who asks (as), what
is expected (allow or deny), and an object with an action, or a statement:

  cases:
    - {name: salaries are not for analysts, as: alice, ref: shop.hr.pay, expect: deny}
    - {as: alice, ref: shop.customers.email, action: query, expect: allow, mask: partial}
    - {as: alice, ref: shop.orders, expect: allow, where: "region = 'EMEA'"}
    - {as: alice, sql: "SELECT ssn FROM customers", expect: deny, code: not-available}
    - {as: alice, sql: "SELECT COUNT(*) FROM orders", expect: allow, rows: [[41]]}

rows are compared with what the governed statement returns, in any order; its source must be a database.`,
		Example: `  schemagate policy test cases.yaml --policy policy.yaml --source sqlite:shop.db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cases, err := readCases(args[0])
			if err != nil {
				return err
			}
			p, err := o.thePolicy(c.Context())
			if err != nil {
				return err
			}
			s, sources, err := o.catalog(c.Context(), progress(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			e, err := casbin.New(p, s)
			if err != nil {
				return err
			}
			run := map[string]api.Runner{}
			if slices.ContainsFunc(cases, func(c policyCase) bool { return c.Rows != nil }) {
				found, stop, err := runners(c.Context(), sources)
				if err != nil {
					return err
				}
				defer stop()
				run = found
			}
			j := judgedPolicy{p, e, s}
			failed := []caseResult{}
			for n, pc := range cases {
				want, got, err := j.try(c.Context(), pc, run)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", args[0], pc.title(n), err)
				}
				if want != got {
					failed = append(failed, caseResult{pc.title(n), want, got})
				}
			}
			if o.json {
				if err := printJSON(c.OutOrStdout(), map[string]any{"cases": len(cases), "failed": failed}); err != nil {
					return err
				}
			} else {
				for _, f := range failed {
					fmt.Fprintf(c.OutOrStdout(), "%s\n  want %s\n  got  %s\n", f.Name, f.Want, f.Got)
				}
				fmt.Fprintf(c.OutOrStdout(), "%d of %d cases are as expected\n", len(cases)-len(failed), len(cases))
			}
			if len(failed) > 0 {
				return said(errFound)
			}
			return nil
		},
	}
	o.policyFlags(c)
	return c
}

func readCases(path string) ([]policyCase, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Cases []policyCase `yaml:"cases"`
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		return nil, usagef("%s: %v", path, err)
	}
	if len(file.Cases) == 0 {
		return nil, usagef("%s holds no case; write them as a list under cases", path)
	}
	for n, c := range file.Cases {
		wrong := ""
		switch {
		case c.As == "":
			wrong = "it is not said who asks; write as: NAME"
		case c.Expect != "allow" && c.Expect != "deny":
			wrong = "write expect: allow or expect: deny"
		case (c.Ref == "") == (c.SQL == ""):
			wrong = "write either ref: OBJECT or sql: STATEMENT"
		case c.Ref != "" && (c.Rows != nil || c.Code != "" || c.In != ""):
			wrong = "rows, code and database are of statements"
		case c.SQL != "" && (c.Mask != nil || c.Where != nil || c.Action != ""):
			wrong = "action, mask and where are of objects"
		case c.Action != "" && !slices.Contains(acl.Actions[:], acl.Action(c.Action)):
			wrong = fmt.Sprintf("%q is no action", c.Action)
		case c.Expect == "deny" && (c.Mask != nil || c.Where != nil || c.Rows != nil), c.Expect == "allow" && c.Code != "":
			wrong = "mask, where and rows are of what is allowed, a code of what is denied"
		}
		if wrong != "" {
			return nil, usagef("%s: %s: %s", path, c.title(n), wrong)
		}
	}
	return file.Cases, nil
}

// try says what a case expects and what comes out, in the same words if they agree.
func (j judgedPolicy) try(ctx context.Context, c policyCase, run map[string]api.Runner) (want, got string, err error) {
	v, err := j.view(c.As)
	if err != nil {
		return "", "", err
	}
	if c.Ref != "" {
		return j.tryObject(c, v)
	}
	return j.tryStatement(ctx, c, v, run)
}

func (j judgedPolicy) tryObject(c policyCase, v acl.View) (want, got string, err error) {
	o, err := j.object(c.Ref)
	if err != nil {
		return "", "", err
	}
	action := acl.ActionQuery
	if c.Action != "" {
		action = acl.Action(c.Action)
	}
	d := j.policy.Explain(v, action, o.ID, time.Now())
	want, got = c.Expect, d.Effect.String()
	a := v.Access(o.ID)
	if c.Mask != nil {
		kind := string(a.Mask)
		if kind == "" {
			kind = "none"
		}
		want, got = want+", mask "+*c.Mask, got+", mask "+kind
	}
	if c.Where != nil {
		where := "none"
		if a.Rows != nil {
			where = rowsText(*a.Rows)
		}
		want, got = want+", where "+*c.Where, got+", where "+where
	}
	if want != got && d.Effect.String() != c.Expect {
		got += " (" + d.Because + ")"
	}
	return want, got, nil
}

func (j judgedPolicy) tryStatement(ctx context.Context, c policyCase, v acl.View, run map[string]api.Runner) (want, got string, err error) {
	if c.In == "" {
		if len(j.snapshot.Databases()) != 1 {
			return "", "", usagef("the catalog holds %d databases; say which one the statement runs in with database: NAME", len(j.snapshot.Databases()))
		}
		c.In = j.snapshot.Databases()[0].Name
	}
	schema, err := rewrite.NewSchema(v, c.In)
	if err != nil {
		return "", "", usageError{err}
	}
	at := slices.IndexFunc(guards(), func(g *rewrite.Guard) bool { return g.Dialect() == schema.Dialect() })
	if at < 0 {
		return "", "", usagef("there is no guard for %s", schema.Dialect())
	}
	want = c.Expect
	if c.Code != "" {
		want += ", " + c.Code
	}
	st, err := guards()[at].Rewrite(c.SQL, schema)
	var no *acl.Refusal
	switch {
	case errors.As(err, &no):
		got = acl.Deny.String()
		if c.Code != "" {
			got += ", " + no.Code
		}
		if want != got {
			got += " (" + no.Public + ")"
		}
		return want, got, nil
	case err != nil:
		return "", "", err
	}
	got = acl.Allow.String()
	if c.Rows == nil {
		return want, got, nil
	}
	runner := run[c.In]
	if runner == nil {
		return "", "", usagef("the database %s is not connected, so rows cannot be compared; name it with --source", c.In)
	}
	rows, err := runner.Run(ctx, st)
	if err != nil {
		return "", "", err
	}
	if rows.Truncated {
		return want, got + ", and more rows than are read", nil
	}
	return want + ", rows " + rowSet(*c.Rows), got + ", rows " + rowSet(rows.Rows), nil
}

// exact writes a value as text, numbers as people do.
func exact(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// rowSet writes rows out in one order, values as text.
func rowSet(rows [][]any) string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		values := make([]string, len(row))
		for k, v := range row {
			values[k] = exact(v)
		}
		lines[i] = "[" + strings.Join(values, ", ") + "]"
	}
	slices.Sort(lines)
	return "[" + strings.Join(lines, ", ") + "]"
}
