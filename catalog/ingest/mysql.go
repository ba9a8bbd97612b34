package ingest

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/schemagate/schemagate/catalog"
)

// mysqlSource is one database of a MySQL or MariaDB server, or all of them.
type mysqlSource struct {
	config   *mysql.Config
	database string // empty for all
}

func openMySQL(address string) (*mysqlSource, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, errAddress
	}
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306"))
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	if strings.Contains(c.DBName, "/") {
		return nil, fmt.Errorf("%q is no name of a database; write mysql://USER:PASSWORD@HOST:PORT/DATABASE", c.DBName)
	}
	for name, values := range u.Query() {
		switch name {
		case "tls": // true, false, skip-verify or preferred
			c.TLSConfig = values[0]
		default:
			return nil, fmt.Errorf("unknown setting %q in the address; known is tls", name)
		}
	}
	c.Timeout = 10 * time.Second
	c.ParseTime = true
	c.Logger = log.New(io.Discard, "", 0) // what matters comes back as an error
	return &mysqlSource{config: c, database: c.DBName}, nil
}

// Dialect is MySQL, which MariaDB shares.
func (s *mysqlSource) Dialect() catalog.Dialect { return catalog.MySQL }

// DB connects. Transactions on it are read-only, and names, strings and times read the same whatever the server's
// settings are.
func (s *mysqlSource) DB(ctx context.Context) (*sql.DB, error) {
	base, err := mysql.NewConnector(s.config)
	if err != nil {
		return nil, oneLine(err, s.config.Passwd)
	}
	db := sql.OpenDB(connector{base, func(ctx context.Context, conn driver.Conn) error {
		for _, statement := range []string{
			"SET SESSION TRANSACTION READ ONLY",
			"SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
			"SET SESSION time_zone = '+00:00'",
		} {
			if err := execute(ctx, conn, statement); err != nil {
				return err
			}
		}
		return nil
	}})
	if err := db.PingContext(ctx); err != nil {
		db.Close() // nothing was opened
		return nil, unreachable(err, s.config.Passwd)
	}
	return db, nil
}

// Read reads tables and SQL views.
func (s *mysqlSource) Read(ctx context.Context, progress func(string)) (Content, error) {
	if progress == nil {
		progress = func(string) {}
	}
	db, err := s.DB(ctx)
	if err != nil {
		return Content{}, err
	}
	defer db.Close()
	r := mysqlReader{byName: map[mysqlName]*relation{}, estimate: map[*relation]int64{}}
	if err := r.read(ctx, db, s.database, progress); err != nil {
		return Content{}, fmt.Errorf("read the schema: %w", oneLine(err, s.config.Passwd))
	}
	err = measure(ctx, r.relations, progress,
		func(ctx context.Context, rel *relation) error {
			if err := r.measure(ctx, db, rel); err != nil {
				return err
			}
			// As bytes, values that differ in letter case or accents count as different, so that the same rows always give the
			// same dictionary.
			table := mysqlTable(rel)
			completeDictionaries(ctx, db, rel, func(column string) string {
				return fmt.Sprintf("%sDISTINCT CAST(v AS BINARY) FROM (SELECT %s AS v FROM %s LIMIT %d) AS t LIMIT %d", mysqlDeadline, mysqlText(column, dictionaryChars+1), table, dictionaryRows, dictionaryValues+1)
			}, progress)
			return nil
		},
		func(ctx context.Context, _ error) bool { return db.PingContext(ctx) != nil })
	if err != nil {
		return Content{}, oneLine(err, s.config.Passwd)
	}
	return Content{Databases: r.databases, Objects: flatten(r.relations)}, nil
}

type mysqlName struct{ database, table string }

type mysqlReader struct {
	databases []catalog.Database
	relations []*relation
	byName    map[mysqlName]*relation
	estimate  map[*relation]int64 // the engine's number of rows
}

func (r *mysqlReader) read(ctx context.Context, db *sql.DB, database string, progress func(string)) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing was written
	err = each(ctx, tx, func(scan func(...any) error) error {
		d := catalog.Database{Dialect: catalog.MySQL}
		if err := scan(&d.Name); err != nil {
			return err
		}
		r.databases = append(r.databases, d)
		return nil
	}, `SELECT schema_name FROM information_schema.schemata
		WHERE schema_name NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') AND (? = '' OR schema_name = ?)
		ORDER BY schema_name`, database, database)
	if err != nil {
		return err
	}
	if database != "" && len(r.databases) != 1 {
		return fmt.Errorf("the server shows this login no database named %q that is not its own", database)
	}
	for _, d := range r.databases {
		progress("reading the schema of " + d.Name)
		for _, step := range []func(context.Context, *sql.Tx, string) error{r.tables, r.columns, r.keys, r.foreignKeys} {
			if err := step(ctx, tx, d.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *mysqlReader) tables(ctx context.Context, tx *sql.Tx, database string) error {
	return each(ctx, tx, func(scan func(...any) error) error {
		var name, kind, comment string
		var rows sql.NullInt64
		var definition sql.NullString
		if err := scan(&name, &kind, &comment, &rows, &definition); err != nil {
			return err
		}
		if kind == "VIEW" {
			comment = "" // the server puts the word VIEW there, or why it does not run
		}
		rel := newRelation(catalog.TableRef(database, "", name), comment)
		if kind == "VIEW" {
			rel.stored = false
			rel.object.Table.SQLView = cmp.Or(definition.String, "/* the server does not show this login the definition */")
		}
		if rows.Valid {
			r.estimate[rel] = rows.Int64
		}
		r.relations = append(r.relations, rel)
		r.byName[mysqlName{database, name}] = rel
		return nil
	}, `SELECT t.table_name, t.table_type, coalesce(t.table_comment, ''), t.table_rows, v.view_definition
		FROM information_schema.tables AS t
		LEFT JOIN information_schema.views AS v ON v.table_schema = t.table_schema AND v.table_name = t.table_name
		WHERE t.table_schema = ? AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW') ORDER BY t.table_name`, database)
}

func (r *mysqlReader) columns(ctx context.Context, tx *sql.Tx, database string) error {
	return each(ctx, tx, func(scan func(...any) error) error {
		var table, name, typ, kind, nullable, comment string
		if err := scan(&table, &name, &typ, &kind, &nullable, &comment); err != nil {
			return err
		}
		if rel := r.byName[mysqlName{database, table}]; rel != nil {
			rel.add(name, comment, mysqlHolds(kind), catalog.Column{Type: typ, NotNull: nullable == "NO"})
		}
		return nil
	}, `SELECT table_name, column_name, column_type, data_type, is_nullable, coalesce(column_comment, '')
		FROM information_schema.columns WHERE table_schema = ? ORDER BY table_name, ordinal_position`, database)
}

// mysqlHolds tells what values of a data type are.
func mysqlHolds(dataType string) holding {
	dataType = strings.ToLower(dataType)
	switch dataType {
	case "bit", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "vector":
		return holdsBytes
	case "enum", "set":
		return holdsText
	}
	for _, part := range []string{"blob", "binary", "geom"} {
		if strings.Contains(dataType, part) {
			return holdsBytes
		}
	}
	if strings.Contains(dataType, "char") || strings.Contains(dataType, "text") {
		return holdsText
	}
	return holdsOther
}

// keys reads unique indexes, in the order of their columns. MySQL lists an index over an expression without a column.
func (r *mysqlReader) keys(ctx context.Context, tx *sql.Tx, database string) error {
	type index struct{ table, name string }
	var order []index
	columns := map[index][]string{}
	err := each(ctx, tx, func(scan func(...any) error) error {
		var i index
		var column sql.NullString
		if err := scan(&i.table, &i.name, &column); err != nil {
			return err
		}
		if _, known := columns[i]; !known {
			order = append(order, i)
		}
		columns[i] = append(columns[i], column.String)
		return nil
	}, `SELECT table_name, index_name, column_name FROM information_schema.statistics
		WHERE table_schema = ? AND non_unique = 0 ORDER BY table_name, index_name, seq_in_index`, database)
	for _, i := range order {
		rel := r.byName[mysqlName{database, i.table}]
		switch key := columns[i]; {
		case rel == nil || slices.Contains(key, ""):
		case i.name == "PRIMARY":
			rel.object.Table.PrimaryKey = key
		default:
			rel.object.Table.UniqueKeys = append(rel.object.Table.UniqueKeys, key)
		}
	}
	return err
}

func (r *mysqlReader) foreignKeys(ctx context.Context, tx *sql.Tx, database string) error {
	last := ""
	return each(ctx, tx, func(scan func(...any) error) error {
		var table, constraint, column, toDatabase, toTable, toColumn string
		if err := scan(&table, &constraint, &column, &toDatabase, &toTable, &toColumn); err != nil {
			return err
		}
		rel := r.byName[mysqlName{database, table}]
		if rel == nil {
			return nil
		}
		t := rel.object.Table
		if id := table + "\x00" + constraint; id != last {
			last = id
			t.ForeignKeys = append(t.ForeignKeys, catalog.ForeignKey{To: catalog.TableRef(toDatabase, "", toTable)})
		}
		k := &t.ForeignKeys[len(t.ForeignKeys)-1]
		k.Columns, k.ToColumns = append(k.Columns, column), append(k.ToColumns, toColumn)
		return nil
	}, `SELECT table_name, constraint_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name
		FROM information_schema.key_column_usage WHERE table_schema = ? AND referenced_table_name IS NOT NULL
		ORDER BY table_name, constraint_name, ordinal_position`, database)
}

// mysqlDeadline makes the server itself stop a query: MariaDB runs the first comment and ignores the second, MySQL
// the other way round.
var mysqlDeadline = fmt.Sprintf("/*M! SET STATEMENT max_statement_time=%d FOR */ SELECT /*+ MAX_EXECUTION_TIME(%d) */ ",
	int(sampleTimeout.Seconds()), sampleTimeout.Milliseconds())

func (r *mysqlReader) measure(ctx context.Context, db *sql.DB, rel *relation) error {
	table := mysqlTable(rel)
	var columns []string
	for i, c := range rel.columns {
		if rel.holds[i] == holdsBytes {
			columns = append(columns, fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN 0 END", quoteMySQL(c.Ref.Column)))
		} else {
			columns = append(columns, mysqlText(c.Ref.Column, sampleChars+1))
		}
	}
	whole, err := sample(ctx, db, fmt.Sprintf("%s%s FROM %s LIMIT %d", mysqlDeadline, strings.Join(columns, ", "), table, sampleLimit(len(columns))), rel)
	if err != nil || whole {
		return err
	}
	rel.object.Table.Rows, err = countUpTo(ctx, db, fmt.Sprintf("%scount(*) FROM (SELECT 1 FROM %s LIMIT %d) AS t", mysqlDeadline, table, serverMaxCount+1), serverMaxCount)
	if n, known := r.estimate[rel]; err == nil && rel.object.Table.Rows == nil && known {
		rel.object.Table.Rows = &n
	}
	return err
}

func mysqlTable(r *relation) string {
	return quoteMySQL(r.object.Ref.Database) + "." + quoteMySQL(r.object.Ref.Table)
}

// mysqlText reads a column as text of so many characters.
func mysqlText(column string, chars int) string {
	return fmt.Sprintf("left(CAST(%s AS CHAR), %d)", quoteMySQL(column), chars)
}

func quoteMySQL(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
