package ingest

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/schemagate/schemagate/catalog"
)

// relation is a table or SQL view while it is being read.
type relation struct {
	object  catalog.Object
	columns []catalog.Object
	holds   []holding // by column
	few     []int     // columns of text that had few values in the rows looked at, where those were not all rows
	// stored tells that the rows lie in this database and are the table's own. Those of a SQL view or a foreign table may
	// take any amount of work to produce, and those of any view, materialised or not, are rows of other tables whose row
	// filters and masks would not cover them here; so they are not looked at.
	stored bool
}

// holding is what the values of a column are.
type holding uint8

const (
	holdsOther holding = iota // numbers, times and whatever else is no text
	holdsText
	holdsBytes // of which no sample is shown
)

func newRelation(ref catalog.Ref, description string) *relation {
	return &relation{object: catalog.Object{Ref: ref, Description: description, Table: &catalog.Table{}}, stored: true}
}

func (r *relation) add(name, description string, holds holding, c catalog.Column) {
	ref := r.object.Ref
	c.Position = len(r.columns)
	r.columns = append(r.columns, catalog.Object{
		Ref: catalog.ColumnRef(ref.Database, ref.Schema, ref.Table, name), Description: description, Column: &c,
	})
	r.holds = append(r.holds, holds)
}

func flatten(relations []*relation) []catalog.Object {
	var out []catalog.Object
	for _, r := range relations {
		out = append(append(out, r.object), r.columns...)
	}
	return out
}

// connector prepares every connection of a pool before its first use.
type connector struct {
	driver.Connector
	prepare func(context.Context, driver.Conn) error
}

// Connect opens a connection and prepares it.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, conn); err != nil {
		_ = conn.Close() // the error that matters is the one returned
		return nil, err
	}
	return conn, nil
}

func execute(ctx context.Context, conn driver.Conn, statement string) error {
	e, ok := conn.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("the driver cannot run %q on a new connection", statement)
	}
	_, err := e.ExecContext(ctx, statement, nil)
	return err
}
