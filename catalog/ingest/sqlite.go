package ingest

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/schemagate/schemagate/catalog"
)

const (
	sqliteMaxFiles = 10        // attached databases that SQLite allows unless built otherwise
	sqliteMaxCount = 1_000_000 // rows counted one by one
)

// sqliteSource is a file, or a directory whose files are attached side by side.
type sqliteSource struct {
	database string
	file     string       // the one file; empty for a directory
	attached []sqliteFile // the files of a directory, by schema
}

type sqliteFile struct{ schema, path string }

func openSQLite(path string) (*sqliteSource, error) {
	if path == "" {
		return nil, errors.New("the path is missing; write sqlite:PATH")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, plainPathError(err)
	}
	if !info.IsDir() {
		return &sqliteSource{database: baseName(path), file: path}, checkSQLite(path)
	}
	s := &sqliteSource{database: filepath.Base(path)}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, plainPathError(err)
	}
	schemas := map[string]string{}
	for _, e := range entries {
		if ext := strings.ToLower(filepath.Ext(e.Name())); e.IsDir() || ext != ".sqlite" && ext != ".db" {
			continue
		}
		f := sqliteFile{schema: baseName(e.Name()), path: filepath.Join(path, e.Name())}
		key := catalog.SQLite.Key(catalog.PartSchema, f.schema)
		if key == "main" || key == "temp" {
			return nil, fmt.Errorf("%s cannot be a schema, since SQLite reserves the name %s; rename the file", e.Name(), key)
		}
		if other, twice := schemas[key]; twice {
			return nil, fmt.Errorf("%s and %s would be the same schema; rename one", other, e.Name())
		}
		schemas[key] = e.Name()
		if err := checkSQLite(f.path); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		s.attached = append(s.attached, f)
	}
	switch n := len(s.attached); {
	case n == 0:
		return nil, errors.New("the directory holds no *.sqlite or *.db file")
	case n > sqliteMaxFiles:
		return nil, fmt.Errorf("the directory holds %d databases and SQLite attaches at most %d at once; move some elsewhere", n, sqliteMaxFiles)
	}
	return s, nil
}

func baseName(path string) string {
	base := filepath.Base(path)
	return cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base)
}

// plainPathError leaves out the path, which the caller's message holds.
func plainPathError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%w; check the path", p.Err)
	}
	return err
}

// checkSQLite reads the file's header, because SQLite itself notices only at the first statement.
func checkSQLite(path string) error {
	header, err := sqliteHeader(path)
	switch {
	case err != nil:
		return plainPathError(err)
	case len(header) > 0 && !bytes.HasPrefix(header, []byte("SQLite format 3\x00")):
		return errors.New("not a SQLite database, or an encrypted one; check that the path is right and the file whole")
	}
	return nil
}

// sqliteHeader returns the first bytes of a file; a database without any is an empty one.
func sqliteHeader(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header := make([]byte, 20)
	n, err := io.ReadFull(f, header)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return header[:n], nil
}

// sqliteURI names a file such that SQLite neither writes it nor puts files beside it. A database with a write-ahead
// log needs care: SQLite would create the log and its index even for a reader.
func sqliteURI(path string) (string, error) {
	header, err := sqliteHeader(path)
	if err != nil {
		return "", err
	}
	query := "mode=ro"
	if len(header) == 20 && header[18] == 2 {
		log, err := os.Stat(path + "-wal")
		pending := err == nil && log.Size() > 0
		_, err = os.Stat(path + "-shm")
		switch shared := err == nil; {
		case log != nil && shared:
			query += "&readonly_shm=1" // somebody has it open, and keeps the index that we only read
		case pending:
			return "", fmt.Errorf("%s-wal holds changes that were never merged into the database; open it once with the sqlite3 shell to merge them", filepath.Base(path))
		default:
			query += "&immutable=1" // all there is stands in the file itself
		}
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query}).String(), nil
}

// Dialect is SQLite.
func (s *sqliteSource) Dialect() catalog.Dialect { return catalog.SQLite }

// DB opens the file, or an empty database with the directory's files attached. SQLite refuses on it whatever does
// more than read.
func (s *sqliteSource) DB(ctx context.Context) (*sql.DB, error) {
	db := sql.OpenDB(sqliteConnector{s})
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(oneLine(err, ""), db.Close())
	}
	return db, nil
}

// sqliteConnector decides for each connection anew how the files may be opened, since that changes with their logs.
type sqliteConnector struct{ *sqliteSource }

func (c sqliteConnector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	main := "file::memory:"
	if c.file != "" {
		var err error
		if main, err = sqliteURI(c.file); err != nil {
			return nil, err
		}
	}
	separator := "?"
	if strings.Contains(main, "?") {
		separator = "&"
	}
	base, err := sqlite.NewConnector(main + separator + "_query_only=1&_busy_timeout=5000")
	if err != nil {
		return nil, err
	}
	return connector{base, c.attach}.Connect(ctx)
}

func (c sqliteConnector) attach(ctx context.Context, conn driver.Conn) error {
	for _, f := range c.attached {
		uri, err := sqliteURI(f.path)
		if err != nil {
			return err
		}
		if err := execute(ctx, conn, "ATTACH '"+strings.ReplaceAll(uri, "'", "''")+"' AS "+quoteSQLite(f.schema)); err != nil {
			return err
		}
	}
	guarded, ok := conn.(sqlite.AuthorizerRegisterer)
	if !ok {
		return errors.New("the SQLite driver offers no authorizer, without which nothing is read")
	}
	return guarded.RegisterAuthorizer(readOnly)
}

// readOnly lets SQLite compile what reads tables and describes them, and nothing else.
func readOnly(action sqlite.AuthorizerActionCode, first, second, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthTransaction, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if second != "load_extension" {
			return sqlite.AuthorizerOK
		}
	case sqlite.AuthPragma:
		switch strings.ToLower(first) {
		case "table_list", "table_xinfo", "index_list", "index_info", "foreign_key_list":
			return sqlite.AuthorizerOK
		case "query_only":
			if second == "1" { // it is on already; whoever asks again means no harm
				return sqlite.AuthorizerOK
			}
		}
	}
	return sqlite.AuthorizerDeny
}

// Read reads all tables and SQL views; virtual tables and the tables that serve them are left out.
func (s *sqliteSource) Read(ctx context.Context, progress func(string)) (Content, error) {
	if progress == nil {
		progress = func(string) {}
	}
	db, err := s.DB(ctx)
	if err != nil {
		return Content{}, err
	}
	defer db.Close()
	schemas := []sqliteFile{{schema: ""}}
	if s.file == "" {
		schemas = s.attached
	}
	var relations []*relation
	for _, f := range schemas {
		r := sqliteReader{db: db, database: s.database, schema: f.schema, progress: progress}
		found, err := r.read(ctx)
		if err != nil {
			return Content{}, fmt.Errorf("read the schema: %w", oneLine(err, ""))
		}
		relations = append(relations, found...)
	}
	err = measure(ctx, relations, progress,
		func(ctx context.Context, r *relation) error {
			if err := measureSQLite(ctx, db, r); err != nil {
				return err
			}
			table := sqliteTable(r)
			completeDictionaries(ctx, db, r, func(column string) string {
				return fmt.Sprintf("SELECT DISTINCT v FROM (SELECT %s AS v FROM %s LIMIT %d) WHERE typeof(v) = 'text' LIMIT %d", sqliteText(column, dictionaryChars+1), table, dictionaryRows, dictionaryValues+1)
			}, progress)
			return nil
		},
		func(_ context.Context, err error) bool { return sqliteUnreadable(err) })
	if err != nil {
		return Content{}, err
	}
	return Content{
		Databases: []catalog.Database{{Name: s.database, Dialect: catalog.SQLite}},
		Objects:   flatten(relations),
	}, nil
}

// sqliteUnreadable reports whether the file is damaged or gone, rather than one statement wrong.
func sqliteUnreadable(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// sqliteReader reads one schema.
type sqliteReader struct {
	db               *sql.DB
	database, schema string
	progress         func(string)
}

// attachedAs is the name that SQLite knows the schema by.
func (r sqliteReader) attachedAs() string { return cmp.Or(r.schema, "main") }

func (r sqliteReader) read(ctx context.Context) ([]*relation, error) {
	type listed struct{ name, kind, sql string }
	names, err := collect(ctx, r.db, func(scan func(...any) error) (l listed, err error) {
		return l, scan(&l.name, &l.kind, &l.sql)
	}, `SELECT l.name, l.type, coalesce(m.sql, '') FROM pragma_table_list AS l
		JOIN `+quoteSQLite(r.attachedAs())+`.sqlite_master AS m ON m.name = l.name AND m.type IN ('table', 'view')
		WHERE l.schema = ? AND l.type IN ('table', 'view') AND l.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY l.name`, r.attachedAs())
	if err != nil {
		return nil, err
	}
	byKey := map[string]*relation{}
	var relations []*relation
	for _, n := range names {
		ref := catalog.TableRef(r.database, r.schema, n.name)
		if n.name == "" {
			r.progress("left out a table without a name in " + r.database)
			continue
		}
		r.progress("reading " + ref.String())
		rel := newRelation(ref, "")
		if n.kind == "view" {
			rel.object.Table.SQLView, rel.stored = n.sql, false
		}
		switch err := r.columns(ctx, rel); {
		case err != nil && n.kind == "view" && ctx.Err() == nil && !sqliteUnreadable(err):
			// A view is checked when it is used, so a database may hold views of tables that are gone.
			r.progress(fmt.Sprintf("left out SQL view %s, which does not run: %v", ref, oneLine(err, "")))
			continue
		case err != nil:
			return nil, err
		}
		byKey[catalog.SQLite.Key(catalog.PartTable, n.name)] = rel
		relations = append(relations, rel)
	}
	for _, rel := range relations {
		if !rel.stored {
			continue
		}
		if err := r.uniqueKeys(ctx, rel); err != nil {
			return nil, err
		}
		if err := r.foreignKeys(ctx, rel, byKey); err != nil {
			return nil, err
		}
	}
	return relations, nil
}

func (r sqliteReader) columns(ctx context.Context, rel *relation) error {
	type column struct {
		name, typ  string
		notNull    bool
		keyAt      int
		visibility int
	}
	columns, err := collect(ctx, r.db, func(scan func(...any) error) (c column, err error) {
		return c, scan(&c.name, &c.typ, &c.notNull, &c.keyAt, &c.visibility)
	}, `SELECT name, coalesce(type, ''), "notnull", pk, hidden FROM pragma_table_xinfo(?, ?) ORDER BY cid`, rel.object.Ref.Table, r.attachedAs())
	if err != nil {
		return err
	}
	key := map[int]string{}
	for _, c := range columns {
		switch {
		case c.visibility == 1: // a virtual table's hidden column
		case c.name == "":
			r.progress(fmt.Sprintf("left out a column without a name in %s", rel.object.Ref))
		default:
			rowID := c.keyAt == 1 && strings.EqualFold(c.typ, "INTEGER")
			rel.add(c.name, "", sqliteHolds(c.typ), catalog.Column{Type: c.typ, NotNull: c.notNull || rowID})
			if c.keyAt > 0 {
				key[c.keyAt] = c.name
			}
		}
	}
	for i := 1; i <= len(key); i++ {
		rel.object.Table.PrimaryKey = append(rel.object.Table.PrimaryKey, key[i])
	}
	return nil
}

// sqliteHolds tells from a declared type what it is meant for; a column without one may hold text.
func sqliteHolds(typ string) holding {
	typ = strings.ToUpper(typ)
	for _, part := range []string{"CHAR", "TEXT", "CLOB", "STRING", "ENUM"} {
		if typ == "" || strings.Contains(typ, part) {
			return holdsText
		}
	}
	return holdsOther
}

func (r sqliteReader) uniqueKeys(ctx context.Context, rel *relation) error {
	type part struct {
		index  string
		column sql.NullString
	}
	// An index over an expression or over some of the rows makes no column unique.
	parts, err := collect(ctx, r.db, func(scan func(...any) error) (p part, err error) {
		return p, scan(&p.index, &p.column)
	}, `SELECT l.name, i.name FROM pragma_index_list(?1, ?2) AS l, pragma_index_info(l.name, ?2) AS i
		WHERE l."unique" = 1 AND l.partial = 0 AND l.origin <> 'pk' ORDER BY l.name, i.seqno`, rel.object.Ref.Table, r.attachedAs())
	if err != nil {
		return err
	}
	for len(parts) > 0 {
		n := slices.IndexFunc(parts, func(p part) bool { return p.index != parts[0].index })
		if n < 0 {
			n = len(parts)
		}
		var columns []string
		for _, p := range parts[:n] {
			if p.column.String != "" {
				columns = append(columns, p.column.String)
			}
		}
		if len(columns) == n {
			rel.object.Table.UniqueKeys = append(rel.object.Table.UniqueKeys, columns)
		}
		parts = parts[n:]
	}
	return nil
}

func (r sqliteReader) foreignKeys(ctx context.Context, rel *relation, byKey map[string]*relation) error {
	type part struct {
		id, seq     int
		table, from string
		to          sql.NullString
	}
	parts, err := collect(ctx, r.db, func(scan func(...any) error) (p part, err error) {
		return p, scan(&p.id, &p.seq, &p.table, &p.from, &p.to)
	}, `SELECT id, seq, "table", "from", "to" FROM pragma_foreign_key_list(?, ?) ORDER BY id DESC, seq`, rel.object.Ref.Table, r.attachedAs())
	if err != nil {
		return err
	}
	var keys []catalog.ForeignKey
	for _, p := range parts {
		target := byKey[catalog.SQLite.Key(catalog.PartTable, p.table)]
		if target == nil {
			continue // declared, but there is no such table
		}
		to := p.to.String
		if !p.to.Valid { // the key of the other table is meant
			if p.seq >= len(target.object.Table.PrimaryKey) {
				continue
			}
			to = target.object.Table.PrimaryKey[p.seq]
		}
		if p.seq == 0 {
			keys = append(keys, catalog.ForeignKey{To: target.object.Ref})
		}
		if len(keys) == 0 {
			continue
		}
		k := &keys[len(keys)-1]
		k.Columns = append(k.Columns, rel.spelling(p.from))
		k.ToColumns = append(k.ToColumns, target.spelling(to))
	}
	rel.object.Table.ForeignKeys = keys
	return nil
}

// spelling is a column's name as the table spells it.
func (r *relation) spelling(name string) string {
	for _, c := range r.columns {
		if catalog.SQLite.Key(catalog.PartColumn, c.Ref.Column) == catalog.SQLite.Key(catalog.PartColumn, name) {
			return c.Ref.Column
		}
	}
	return name
}

func measureSQLite(ctx context.Context, db *sql.DB, r *relation) error {
	ref, table := r.object.Ref, sqliteTable(r)
	var columns []string
	for _, c := range r.columns {
		columns = append(columns, sqliteText(c.Ref.Column, sampleChars+1))
	}
	whole, err := sample(ctx, db, fmt.Sprintf("SELECT %s FROM %s LIMIT %d", strings.Join(columns, ", "), table, sampleLimit(len(columns))), r)
	if err != nil || whole {
		return err
	}
	r.object.Table.Rows, err = countUpTo(ctx, db, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", table, sqliteMaxCount+1), sqliteMaxCount)
	if err != nil || r.object.Table.Rows != nil {
		return err
	}
	// ANALYZE leaves the number of rows as the first word of stat.
	var stat string
	err = db.QueryRowContext(ctx, "SELECT stat FROM "+quoteSQLite(cmp.Or(ref.Schema, "main"))+".sqlite_stat1 WHERE tbl = ? LIMIT 1", ref.Table).Scan(&stat)
	if err != nil {
		return nil // never analysed, so the number stays unknown
	}
	first, _, _ := strings.Cut(stat, " ")
	if n, err := strconv.ParseInt(first, 10, 64); err == nil {
		r.object.Table.Rows = &n
	}
	return nil
}

func sqliteTable(r *relation) string {
	return quoteSQLite(cmp.Or(r.object.Ref.Schema, "main")) + "." + quoteSQLite(r.object.Ref.Table)
}

// sqliteText reads a column as text of so many characters, and bytes as 0.
func sqliteText(column string, chars int) string {
	name := quoteSQLite(column)
	return fmt.Sprintf("CASE typeof(%s) WHEN 'blob' THEN 0 ELSE substr(CAST(%s AS TEXT), 1, %d) END", name, name, chars)
}

func quoteSQLite(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// collect runs a query and reads each row with one.
func collect[T any](ctx context.Context, db *sql.DB, one func(scan func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := one(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
