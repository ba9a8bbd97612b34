package ingest_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "letter.sqlite"), "Dear reader, this is no database.")
	write(t, filepath.Join(dir, "torn.yaml"), "version: [")
	for _, c := range []struct{ name, spec, want string }{
		{"a missing file", "sqlite:" + filepath.Join(dir, "none.sqlite"), "no such file or directory; check the path"},
		{"no path", "sqlite:", "the path is missing"},
		{"a file of another kind", "sqlite:" + filepath.Join(dir, "letter.sqlite"), "not a SQLite database"},
		{"a directory without databases", "sqlite:" + t.TempDir(), "holds no *.sqlite or *.db file"},
		{"an unknown kind", "oracle://scott:tiger@host/db", "known are sqlite:PATH, postgres://"},
		{"no kind", "shop", "known are sqlite:PATH"},
		{"a missing YAML file", "yaml:" + filepath.Join(dir, "none.yaml"), "check the path"},
		{"torn YAML", "yaml:" + filepath.Join(dir, "torn.yaml"), "torn.yaml:1:"},
		{"a missing benchmark", "bench:" + dir + "/nothing_dev", "no nothing_dev.schema.jsonl or .gz"},
		{"a URL that does not parse", "postgres://u:tig er@host:port/db", "percent-encode"},
		{"a URL without a host", "mysql://", "does not read as a URL"},
		{"an unknown setting", "mysql://u:tiger@host/db?allowAllFiles=true", `unknown setting "allowAllFiles"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ingest.Open(c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error that says %q", err, c.want)
			}
			if strings.Contains(err.Error(), "tig") {
				t.Errorf("the error shows the password: %v", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
		})
	}
}

func TestAnUnreachableServerIsOneLineWithoutThePassword(t *testing.T) {
	for _, spec := range []string{"postgres://u:tiger@127.0.0.1:1/db", "mysql://u:tiger@127.0.0.1:1/db"} {
		_, err := ingest.Load(context.Background(), []string{spec}, nil)
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%v does not say that the connection was refused", err)
			continue
		}
		if strings.Contains(err.Error(), "tiger") || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error shows the password or has more than one line: %q", err)
		}
	}
}

func TestLoadRefusesTwoDatabasesOfOneName(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "shop.sqlite"), filepath.Join(t.TempDir(), "shop.db")
	sqliteFile(t, a, "CREATE TABLE t (a)")
	sqliteFile(t, b, "CREATE TABLE t (a)")
	_, err := ingest.Load(context.Background(), []string{"sqlite:" + a, "sqlite:" + b}, nil)
	if err == nil || !strings.Contains(err.Error(), `both hold a database named "shop"`) {
		t.Fatalf("got %v", err)
	}
}

// write makes a file.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sqliteFile builds a database.
func sqliteFile(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	apply(t, db, statements...)
}

func apply(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func load(t *testing.T, specs ...string) *catalog.Snapshot {
	t.Helper()
	s, err := ingest.Load(context.Background(), specs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// object finds a table or column by its path.
func object(t *testing.T, s *catalog.Snapshot, ref catalog.Ref) *catalog.Object {
	t.Helper()
	o, ok := s.Lookup(ref)
	if !ok {
		t.Fatalf("the catalog does not hold %s; it holds %v", ref, refs(s))
	}
	return o
}

func refs(s *catalog.Snapshot) []string {
	var out []string
	for _, o := range s.All() {
		out = append(out, o.Ref.String())
	}
	return out
}

func number[T int64 | float64](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}
