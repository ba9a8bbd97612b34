package execute

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Class is what may be said about a database's error.
type Class string

// The classes.
const (
	ClassTimeout     Class = "timeout"
	ClassUnknownName Class = "unknown-name" // a table, column or function is missing or ambiguous
	ClassType        Class = "type"         // a value does not fit its type or range
	ClassDivision    Class = "division"     // by zero
	ClassPermission  Class = "permission"   // the login may not, or the statement does more than read
	ClassUnavailable Class = "unavailable"  // the database cannot be reached or is overloaded
	ClassOther       Class = "other"
)

// Error is a statement's failure. Its text holds the class and nothing that the database said, since a database's
// error text can quote hidden values; the cause is for the audit, by Unwrap.
type Error struct {
	Class Class
	cause error
}

// Error describes the class and says what to do next.
func (e *Error) Error() string {
	switch e.Class {
	case ClassTimeout:
		return "execute: timeout: the statement took too long; ask for less, or filter on an indexed column"
	case ClassUnknownName:
		return "execute: unknown-name: the database does not know a name in the statement; ingest the catalog again"
	case ClassType:
		return "execute: type: a value does not fit the type it is used as; cast it or compare like with like"
	case ClassDivision:
		return "execute: division: the statement divides by zero; divide by nullif(x, 0)"
	case ClassPermission:
		return "execute: permission: the database's login may not do this; it needs to read, and reads only"
	case ClassUnavailable:
		return "execute: unavailable: the database cannot be reached right now; try again later"
	}
	return "execute: other: the database refused the statement; see the audit record for the reason"
}

// Unwrap returns what the driver reported. It must not reach whoever asked.
func (e *Error) Unwrap() error { return e.cause }

func classify(err error) Class {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var lite *sqlite.Error
	var network net.Error
	switch {
	case errors.As(err, &pg):
		return classifyPostgres(pg.Code)
	case errors.As(err, &my):
		return classifyMySQL(my.Number)
	case errors.As(err, &lite):
		return classifySQLite(lite)
	case errors.As(err, &network), errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ClassUnavailable
	}
	return ClassOther
}

// classifyPostgres reads an SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
func classifyPostgres(state string) Class {
	switch state {
	case "57014", "55P03", "25P03", "25P04":
		return ClassTimeout
	case "42703", "42P01", "42883", "42704", "42702", "42725", "42P02", "3F000":
		return ClassUnknownName
	case "22012":
		return ClassDivision
	case "42804", "42846", "42P18", "42P22", "42P21", "42809":
		return ClassType
	case "42501", "25006", "0LP01":
		return ClassPermission
	}
	switch state[:min(2, len(state))] {
	case "22":
		return ClassType
	case "28":
		return ClassPermission
	case "08", "53", "57", "58":
		return ClassUnavailable
	}
	return ClassOther
}

// classifyMySQL reads an error number of MySQL or MariaDB.
func classifyMySQL(number uint16) Class {
	switch number {
	case 1205, 1317, 1969, 3024:
		return ClassTimeout
	case 1046, 1049, 1051, 1052, 1054, 1109, 1146, 1305, 1630:
		return ClassUnknownName
	case 1365:
		return ClassDivision
	case 1264, 1265, 1267, 1270, 1292, 1366, 1367, 1406, 1411, 1525, 1690:
		return ClassType
	case 1044, 1045, 1142, 1143, 1227, 1290, 1370, 1698, 1792:
		return ClassPermission
	case 1040, 1041, 1053, 1077, 1129, 1130, 1158, 1159, 1160, 1161, 1203, 1226, 1927:
		return ClassUnavailable
	}
	return ClassOther
}

// classifySQLite reads a result code, and the message where SQLite has no code of its own for an unknown name.
func classifySQLite(err *sqlite.Error) Class {
	switch err.Code() & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		return ClassTimeout
	case sqlite3.SQLITE_MISMATCH:
		return ClassType
	case sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return ClassPermission
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return ClassUnavailable
	case sqlite3.SQLITE_ERROR:
		message := err.Error()
		for _, part := range []string{"no such table", "no such column", "no such function", "ambiguous column name"} {
			if strings.Contains(message, part) {
				return ClassUnknownName
			}
		}
		switch {
		case strings.Contains(message, "not authorized"):
			return ClassPermission
		case strings.Contains(message, "integer overflow"):
			return ClassType
		}
	}
	return ClassOther
}
