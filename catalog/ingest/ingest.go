// Package ingest reads catalogs from where they live: SQLite files, PostgreSQL, MySQL and MariaDB, the benchmark
// schemas, and YAML files that say what a database cannot say about itself. Sources are opened to be read and
// nothing else; statistics come from a bounded number of rows of each table.
package ingest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/schemagate/schemagate/catalog"
)

// Source is something that a catalog can be read from.
type Source interface {
	// Read returns what the source says. progress, which may be nil, is told in a few words what is being read and
	// what had to be left out.
	Read(ctx context.Context, progress func(string)) (Content, error)
}

// Live is a Source that statements can be run against.
type Live interface {
	Source
	// DB opens the database read-only; the caller closes it.
	DB(ctx context.Context) (*sql.DB, error)
	Dialect() catalog.Dialect
}

// Content is what a source says, not yet checked as a whole.
type Content struct {
	Databases []catalog.Database
	Objects   []catalog.Object
}

// Open parses a source's name and checks what can be checked without connecting. The names are
//
//	sqlite:PATH           a file, or a directory each of whose *.sqlite and *.db files is a schema
//	postgres://...        a connection URL; the schemas of that database
//	mysql://...           a connection URL, mariadb:// too; that database, or all without a path
//	bench:DIR/SET         a benchmark's schema
//	yaml:FILE             metrics, relationships, past queries and documentation over other sources
//
// A YAML source reads only together with the sources that it speaks of, through Load.
func Open(spec string) (Source, error) {
	scheme, rest, _ := strings.Cut(spec, ":")
	var s Source
	var err error
	switch scheme {
	case "yaml":
		o, err := openYAML(rest)
		if err != nil {
			return nil, err // it names file and line
		}
		return o, nil
	case "sqlite":
		s, err = openSQLite(rest)
	case "postgres", "postgresql":
		s, err = openPostgres(spec)
	case "mysql", "mariadb":
		s, err = openMySQL(spec)
	case "bench":
		dir, set := filepath.Split(rest)
		b := Bench{Dir: filepath.Clean(dir), Set: set}
		_, err = b.schema()
		s = b
	default:
		return nil, fmt.Errorf("ingest: %q is no kind of source; known are sqlite:PATH, postgres://..., mysql://..., bench:DIR/SET, yaml:FILE", scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("ingest: %s: %w", Public(spec), err)
	}
	return s, nil
}

// Load reads the sources, databases first and YAML files over what those hold, and builds the snapshot.
func Load(ctx context.Context, specs []string, progress func(string)) (*catalog.Snapshot, error) {
	s, _, err := LoadLive(ctx, specs, progress)
	return s, err
}

// LoadLive is Load that also returns the sources that statements can be run against, by the databases that they hold.
func LoadLive(ctx context.Context, specs []string, progress func(string)) (*catalog.Snapshot, map[string]Live, error) {
	if progress == nil {
		progress = func(string) {}
	}
	var content Content
	var overlays []*overlay
	from, live := map[string]string{}, map[string]Live{}
	sources := make([]Source, len(specs))
	for i, spec := range specs {
		var err error
		if sources[i], err = Open(spec); err != nil {
			return nil, nil, err
		}
	}
	for i, s := range sources {
		if o, ok := s.(*overlay); ok {
			overlays = append(overlays, o)
			continue
		}
		c, err := s.Read(ctx, progress)
		if sqliteUnreadable(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("ingest: %s: %w", Public(specs[i]), err)
		}
		for _, d := range c.Databases {
			if other, twice := from[d.Name]; twice {
				return nil, nil, fmt.Errorf("ingest: %s and %s both hold a database named %q; a catalog needs different names, so read them into two catalogs or rename one", other, Public(specs[i]), d.Name)
			}
			from[d.Name] = Public(specs[i])
			if l, ok := s.(Live); ok {
				live[d.Name] = l
			}
		}
		content.Databases = append(content.Databases, c.Databases...)
		content.Objects = append(content.Objects, c.Objects...)
	}
	if len(overlays) > 0 {
		base, err := catalog.Build(content.Databases, slices.Clone(content.Objects))
		if err != nil {
			return nil, nil, err
		}
		var errs []error
		for _, o := range overlays {
			progress("reading " + o.path)
			errs = append(errs, o.lay(base, &content))
		}
		if err := errors.Join(errs...); err != nil {
			return nil, nil, err
		}
	}
	snapshot, err := catalog.Build(content.Databases, content.Objects)
	return snapshot, live, err
}

// Public is the source's name without what a URL says of users and passwords.
func Public(spec string) string {
	if !strings.Contains(spec, "://") {
		return spec
	}
	u, err := url.Parse(spec)
	if err != nil {
		scheme, _, _ := strings.Cut(spec, ":")
		return scheme + "://..."
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// ErrDamaged is wrapped by errors about a file that is a database but cannot be read, ErrUnreachable by those about a
// server that does not let us in.
var (
	ErrDamaged     = errors.New("the file is damaged; restore it from a backup")
	ErrUnreachable = errors.New("cannot connect; check that the server runs, its address and the login")
)

// unreachable says once what is wrong with a connection; drivers repeat themselves for each address they try.
func unreachable(err error, password string) error {
	if lines := strings.Split(err.Error(), "\n"); len(lines) > 2 {
		err = &driverError{text: lines[0] + " " + lines[1], cause: err}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, oneLine(err, password))
}

// errAddress replaces the errors of URL parsers, which quote the URL and the password in it.
var errAddress = errors.New("the address does not read as a URL; percent-encode special characters in user and password")

// oneLine is an error of a driver as one line without the password.
func oneLine(err error, password string) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if password != "" {
		text = strings.ReplaceAll(text, password, "***")
	}
	return &driverError{text: text, cause: err}
}

type driverError struct {
	text  string
	cause error
}

func (e *driverError) Error() string { return e.text }
func (e *driverError) Unwrap() error { return e.cause }
