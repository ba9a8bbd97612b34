// Package rewritetest runs the same specifications against every dialect of package rewrite.
package rewritetest

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

var update = flag.Bool("update", false, "write what the guard does now into the golden files")

// Dialect is a dialect under test: the guard's side and the reader of CREATE statements beside it.
type Dialect interface {
	rewrite.Dialect
	// Objects reads the tables that DDL creates as the catalog of a database of that name, and ignores the rest.
	Objects(database, ddl string) (catalog.Database, []catalog.Object, error)
}

// Asker is the principal that specifications ask as. Database is the name of their database.
const (
	Asker    = "asker"
	Database = "db"
)

// NewSchema builds the asker's schema from CREATE statements and a policy file.
func NewSchema(d Dialect, ddl, policy string) (*rewrite.Schema, error) {
	db, objects, err := d.Objects(Database, ddl)
	if err != nil {
		return nil, err
	}
	snapshot, err := catalog.Build([]catalog.Database{db}, objects)
	if err != nil {
		return nil, err
	}
	p, err := acl.ParsePolicy("policy.yaml", []byte(policy))
	if err != nil {
		return nil, err
	}
	e, err := casbin.New(p, snapshot)
	if err != nil {
		return nil, err
	}
	v, err := e.View(Asker)
	if err != nil {
		return nil, err
	}
	return rewrite.NewSchema(v, Database)
}

// Golden checks each txtar file of a folder: schema.sql, policy.yaml and in.sql give out.sql, or refusal, whose first
// line is the code and whose second is the public sentence. Its comment says what it proves. -update rewrites the
// answers.
func Golden(t *testing.T, d Dialect, folder string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no specifications in %s (%v)", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := map[string]string{}
			for _, f := range a.Files {
				part[f.Name] = string(f.Data)
			}
			schema, err := NewSchema(d, part["schema.sql"], part["policy.yaml"])
			if err != nil {
				t.Fatal(err)
			}
			name, got := answer(t, rewrite.NewGuard(d, 0), schema, strings.TrimSuffix(part["in.sql"], "\n"))
			if want, ok := part[name]; ok && want == got {
				return
			}
			if !*update {
				t.Fatalf("got %s:\n%s\nwant out.sql:\n%s\nor refusal:\n%s", name, got, part["out.sql"], part["refusal"])
			}
			var kept []txtar.File
			for _, f := range a.Files {
				if f.Name != "out.sql" && f.Name != "refusal" {
					kept = append(kept, f)
				}
			}
			a.Files = append(kept, txtar.File{Name: name, Data: []byte(got)})
			if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func answer(t *testing.T, g *rewrite.Guard, s *rewrite.Schema, sql string) (part, text string) {
	t.Helper()
	st, err := g.Rewrite(sql, s)
	var no *acl.Refusal
	switch {
	case errors.As(err, &no):
		return "refusal", no.Code + "\n" + no.Public + "\n"
	case err != nil:
		t.Fatal(err)
	}
	return "out.sql", st.Text() + "\n"
}
