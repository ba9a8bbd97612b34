// Package warehouse builds the demo's data: the warehouse of an invented European retailer of outdoor gear, with the
// abbreviated names, copies, bridges and dated tables that real ones have. All of it comes from a seed.
package warehouse

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Catalog is what the stewards wrote, as a catalog file: descriptions, metrics, relationships and past queries. Its
// refs begin with demo, so the directory given to Build should be called that.
//
//go:embed catalog.yaml
var Catalog []byte

// Policy is the policy file. It knows alice (analyst, EMEA only), bob (finance), carol (HR, Germany only) and dana
// (auditor: sees all metadata, queries only what is harmless).
//
//go:embed policy.yaml
var Policy []byte

// Questions are what the demo asks. Nothing in the warehouse fits the last one.
var Questions = [...]string{
	"net revenue by region in 2025",
	"average order value for the Marketplace channel in Q3 2025",
	"net revenue by customer email for the Outlet channel in December 2025",
	"average salary by department",
	"promoted revenue by promotion in 2025",
	"how tall is the Eiffel tower",
}

// schema is one file of the warehouse.
type schema struct {
	name   string
	source string // the system that its tables are loaded from
	tables func(*company) []table
}

var schemas = [...]schema{
	{"sales", "POSX", salesTables}, {"crm", "CRM5", crmTables}, {"finance", "LEDG", financeTables}, {"hr", "HRX2", hrTables},
	{"supply", "WMS3", supplyTables}, {"web", "CLKS", webTables}, {"support", "DESK", supportTables}, {"ref", "MDM1", refTables},
}

// Build writes the warehouse into dir, which must exist: sales.db, crm.db and so on, one SQLite file a schema. The same
// seed gives the same tables and rows. It refuses to replace a file, and leaves none behind when it fails. progress, if
// not nil, hears a line for each finished file, one call at a time.
func Build(ctx context.Context, dir string, seed uint64, progress func(string)) (err error) {
	for _, s := range schemas {
		if _, err := os.Lstat(filepath.Join(dir, s.file())); err == nil {
			return fmt.Errorf("build demo warehouse: %s is already in %s; choose an empty directory", s.file(), dir)
		}
	}
	scratch, err := os.MkdirTemp(dir, ".building-")
	if err != nil {
		return fmt.Errorf("build demo warehouse: %w", err)
	}
	defer os.RemoveAll(scratch)

	c := newCompany(seed)
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	for _, s := range schemas {
		g.Go(func() error {
			tables := s.loaded(c)
			if err := write(gctx, filepath.Join(scratch, s.file()), s.name, seed, tables); err != nil {
				return fmt.Errorf("build demo warehouse: %s: %w", s.file(), err)
			}
			if progress != nil {
				rows := 0
				for _, t := range tables {
					rows += t.rows
				}
				mu.Lock()
				defer mu.Unlock()
				progress(fmt.Sprintf("%s: %d tables, %d rows", s.name, len(tables), rows))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}

	var moved []string
	defer func() {
		if err != nil {
			for _, path := range moved {
				os.Remove(path)
			}
		}
	}()
	for _, s := range schemas {
		to := filepath.Join(dir, s.file())
		if err := os.Rename(filepath.Join(scratch, s.file()), to); err != nil {
			return fmt.Errorf("build demo warehouse: %w", err)
		}
		moved = append(moved, to)
	}
	return nil
}

// loaded returns the tables with the two columns that the nightly load adds to whatever it looks after: copies made by
// hand, landing places and events are not among that.
func (s schema) loaded(c *company) []table {
	tables := s.tables(c)
	for i, t := range tables {
		if strings.Contains(t.name, "_bak") || strings.HasSuffix(t.name, "_stg") || strings.HasPrefix(t.name, "events_") {
			continue
		}
		tables[i].columns = append(t.columns,
			column{"dwh_src", "TEXT", mostly(0.99, constant(s.source))},
			column{"dwh_load_id", "INTEGER NOT NULL", at(func(row int) any { return int64(410000 + row/2000) })})
	}
	return tables
}

func (s schema) file() string { return s.name + ".db" }
