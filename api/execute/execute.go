// Package execute runs governed statements on the database that they were written for: read-only, within a deadline,
// and never returning more than it was told to. What a database says about an error stays inside; callers get a class.
package execute

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/rewrite"
)

// Rows is a bounded result. A value is null, a boolean, a number or a string: times are written as RFC 3339 (a date
// alone as its full-date), bytes that are not text in base64, and numbers that JSON lacks as NaN, Infinity and
// -Infinity.
type Rows struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	// Truncated tells that a cap ended the result early.
	Truncated bool `json:"truncated"`
}

// Config bounds what one statement may take. A zero bound means the default.
type Config struct {
	Timeout  time.Duration // 10 s
	MaxRows  int           // 1,000
	MaxBytes int           // of the rows as JSON; 1 MiB
	// HashKey is the secret of hash masks. It is given to the database for the length of a statement, as the setting
	// schemagate.hash_key on PostgreSQL and the variable @schemagate_hash_key on MySQL.
	HashKey string
}

// Validate reports a bound that makes no sense.
func (c Config) Validate() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("execute: the timeout is %v; it must be positive, or 0 for 10s", c.Timeout)
	case c.Timeout > 0 && c.Timeout < time.Millisecond:
		return fmt.Errorf("execute: the timeout is %v; a database counts in milliseconds", c.Timeout)
	case c.MaxRows < 0:
		return fmt.Errorf("execute: the cap of rows is %d; it must be positive, or 0 for 1000", c.MaxRows)
	case c.MaxBytes < 0:
		return fmt.Errorf("execute: the cap of bytes is %d; it must be positive, or 0 for 1048576", c.MaxBytes)
	}
	return nil
}

// Runner runs statements on one database. It is safe for concurrent use.
type Runner struct {
	db      *sql.DB
	dialect catalog.Dialect
	config  Config
}

// New makes a runner on db, which must be used for nothing else: its sessions are made read-only and stay so. The
// dialect must be SQLite, MySQL or PostgreSQL, and db be opened with the driver that package ingest uses for it.
func New(db *sql.DB, dialect catalog.Dialect, c Config) (*Runner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch dialect {
	case catalog.SQLite, catalog.MySQL, catalog.Postgres:
	default:
		return nil, fmt.Errorf("execute: statements of %s cannot be run; those of sqlite, mysql and postgres can", dialect)
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.MaxRows == 0 {
		c.MaxRows = 1000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 20
	}
	return &Runner{db: db, dialect: dialect, config: c}, nil
}

// Run runs a statement. A failure in the database is an *Error; when the caller's own context was cancelled, that is
// the error.
func (r *Runner) Run(ctx context.Context, s rewrite.Statement) (Rows, error) {
	switch {
	case s.Text() == "":
		return Rows{}, errors.New("execute: there is no statement; only one that a guard let through can be run")
	case s.Dialect() != r.dialect:
		return Rows{}, fmt.Errorf("execute: a statement of %s cannot run on a database of %s", s.Dialect(), r.dialect)
	}
	return r.run(ctx, s.Text())
}

func (r *Runner) run(caller context.Context, text string) (Rows, error) {
	ctx, cancel := context.WithTimeout(caller, r.config.Timeout)
	defer cancel()
	rows, err := r.read(ctx, cancel, text)
	switch {
	case err == nil:
		return rows, nil
	case errors.Is(caller.Err(), context.Canceled):
		return Rows{}, fmt.Errorf("execute: %w", caller.Err())
	case ctx.Err() != nil:
		return Rows{}, &Error{Class: ClassTimeout, cause: err}
	}
	return Rows{}, &Error{Class: classify(err), cause: err}
}

// read runs the statement in a read-only transaction that is never committed. stop ends ctx.
func (r *Runner) read(ctx context.Context, stop func(), text string) (Rows, error) {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return Rows{}, err
	}
	defer conn.Close()
	if err := r.prepareSession(ctx, conn); err != nil {
		return Rows{}, err
	}
	clock := ctx
	if r.dialect == catalog.SQLite {
		// Only the interrupt below may end a statement: a context that ended would close the connection under it.
		ctx = context.WithoutCancel(ctx)
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return Rows{}, err
	}
	defer tx.Rollback() // nothing was written
	switch r.dialect {
	case catalog.Postgres:
		err = r.prepareTransaction(ctx, tx)
	case catalog.SQLite:
		var stopInterrupts func()
		if stopInterrupts, err = interruptSQLite(clock, conn); err == nil {
			defer stopInterrupts()
		}
	}
	if err != nil {
		return Rows{}, err
	}
	found, err := tx.QueryContext(ctx, text)
	if err != nil {
		return Rows{}, err
	}
	defer found.Close()
	rows, err := r.take(found)
	if rows.Truncated {
		// Closing would read the rest to the end; ending the query first does not.
		stop()
		if r.dialect == catalog.MySQL {
			// This driver may stop listening to the context before it has heard, and then reads on. A connection
			// that is closed cannot; what closing says of a statement under way is of no interest.
			_ = conn.Raw(func(c any) error { return c.(driver.Conn).Close() })
		}
	}
	return rows, err
}

// take reads rows up to the caps.
func (r *Runner) take(found *sql.Rows) (Rows, error) {
	types, err := found.ColumnTypes()
	if err != nil {
		return Rows{}, err
	}
	out := Rows{Columns: make([]string, len(types)), Rows: [][]any{}}
	for i, t := range types {
		out.Columns[i] = strings.ToValidUTF8(t.Name(), "\uFFFD")
	}
	size := 0
	for found.Next() {
		row, targets := make([]any, len(types)), make([]any, len(types))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := found.Scan(targets...); err != nil {
			return Rows{}, err
		}
		for i := range row {
			row[i] = r.plain(row[i], types[i].DatabaseTypeName())
		}
		encoded, err := json.Marshal(row)
		if err != nil {
			return Rows{}, err
		}
		if size += len(encoded); len(out.Rows) == r.config.MaxRows || size > r.config.MaxBytes {
			out.Truncated = true
			return out, nil
		}
		out.Rows = append(out.Rows, row)
	}
	if err := found.Err(); err != nil {
		return Rows{}, err
	}
	return out, nil
}

// prepareSession makes a connection read-only and gives it the deadline.
func (r *Runner) prepareSession(ctx context.Context, conn *sql.Conn) error {
	switch r.dialect {
	case catalog.SQLite:
		return prepareSQLite(ctx, conn)
	case catalog.MySQL:
		var version string
		if err := conn.QueryRowContext(ctx, "SELECT version()").Scan(&version); err != nil {
			return err
		}
		deadline := fmt.Sprintf("SET SESSION max_execution_time = %d", r.config.Timeout.Milliseconds())
		if strings.Contains(version, "MariaDB") {
			deadline = fmt.Sprintf("SET SESSION max_statement_time = %.3f", r.config.Timeout.Seconds())
		}
		if _, err := conn.ExecContext(ctx, deadline); err != nil {
			return err
		}
		if r.config.HashKey != "" {
			_, err := conn.ExecContext(ctx, "SET @schemagate_hash_key = ?", r.config.HashKey)
			return err
		}
	}
	return nil
}

// prepareTransaction gives a PostgreSQL transaction the deadline and the key.
func (r *Runner) prepareTransaction(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", r.config.Timeout.Milliseconds())); err != nil {
		return err
	}
	if r.config.HashKey == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT set_config('schemagate.hash_key', $1, true)", r.config.HashKey)
	return err
}

// plain is a driver's value as one that JSON can hold.
func (r *Runner) plain(v any, typeName string) any {
	switch v := v.(type) {
	case float32:
		return r.plain(float64(v), typeName)
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
	case time.Time:
		switch {
		case r.dialect == catalog.MySQL && v.IsZero():
			return "0000-00-00" // MySQL's own date for none
		case typeName == "DATE" && v.Equal(v.Truncate(24*time.Hour)):
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339Nano)
	case string:
		if number, ok := exactNumber(v, typeName); ok {
			return number
		}
		return strings.ToValidUTF8(v, "\uFFFD")
	case []byte:
		if !utf8.Valid(v) {
			return base64.StdEncoding.EncodeToString(v)
		}
		if number, ok := exactNumber(string(v), typeName); ok {
			return number
		}
		return string(v)
	}
	return v
}

// exactNumber keeps every digit of a decimal, which drivers hand over as text.
func exactNumber(text, typeName string) (json.Number, bool) {
	if typeName != "NUMERIC" && typeName != "DECIMAL" {
		return "", false
	}
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') || !json.Valid([]byte(text)) {
		return "", false
	}
	return json.Number(text), true
}
