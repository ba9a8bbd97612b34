package execute

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"time"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteMaxValue bounds a single value. SQLite runs inside this process, so an expression that makes a giant string
// would take this process's memory.
const sqliteMaxValue = 16 << 20

// prepareSQLite makes a session read-only and bounds its values.
func prepareSQLite(ctx context.Context, conn *sql.Conn) error {
	if _, err := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, sqliteMaxValue); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "PRAGMA query_only = 1")
	return err
}

// interruptSQLite interrupts whatever runs on conn from the moment that ctx ends until stop returns.
//
// The driver heeds a context only until the first row is there; a statement that takes forever over its second row
// would never end. SQLite's own interrupt ends it at any point, but the driver hides the handle that it takes.
func interruptSQLite(ctx context.Context, conn *sql.Conn) (stop func(), err error) {
	var handle uintptr
	err = conn.Raw(func(driverConn any) error {
		v := reflect.ValueOf(driverConn)
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			return errNoHandle
		}
		field := v.Elem().FieldByName("db")
		if field.Kind() != reflect.Uintptr || field.Uint() == 0 {
			return errNoHandle
		}
		handle = uintptr(field.Uint())
		return nil
	})
	if err != nil {
		return nil, err
	}
	stopped, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-stopped:
			return
		case <-ctx.Done():
		}
		tls := libc.NewTLS()
		defer tls.Close()
		for {
			// An interrupt between two statements is lost, hence again and again.
			sqlite3.Xsqlite3_interrupt(tls, handle)
			select {
			case <-stopped:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(stopped)
		<-finished
	}, nil
}

var errNoHandle = errors.New("the SQLite driver is none whose statements can be interrupted, so nothing is run on it")
