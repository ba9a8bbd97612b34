package ingest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/schemagate/schemagate/catalog"
)

const serverMaxCount = 100_000 // rows that a server is asked to count one by one

// postgresSource is the database that a connection URL names, with all schemas of its own.
type postgresSource struct{ config *pgx.ConnConfig }

func openPostgres(address string) (*postgresSource, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errAddress
	}
	// Exec mode leaves no prepared statements behind, which connection poolers need, and runs one statement at a time.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	for name, value := range map[string]string{
		"application_name":              "schemagate",
		"default_transaction_read_only": "on",
		"search_path":                   "public",
		"standard_conforming_strings":   "on",
		"datestyle":                     "ISO",
		"timezone":                      "UTC",
	} {
		config.RuntimeParams[name] = value
	}
	return &postgresSource{config}, nil
}

// Dialect is PostgreSQL.
func (s *postgresSource) Dialect() catalog.Dialect { return catalog.Postgres }

// DB connects. Every transaction on it is read-only unless it says otherwise.
func (s *postgresSource) DB(ctx context.Context) (*sql.DB, error) {
	db := stdlib.OpenDB(*s.config)
	if err := db.PingContext(ctx); err != nil {
		db.Close() // nothing was opened
		return nil, unreachable(err, s.config.Password)
	}
	return db, nil
}

// Read reads tables, partitioned tables, SQL views, materialized views and foreign tables, except those that belong to
// the system or to an extension.
func (s *postgresSource) Read(ctx context.Context, progress func(string)) (Content, error) {
	if progress == nil {
		progress = func(string) {}
	}
	db, err := s.DB(ctx)
	if err != nil {
		return Content{}, err
	}
	defer db.Close()
	r := postgresReader{byOID: map[int64]*relation{}}
	if err := r.read(ctx, db, progress); err != nil {
		return Content{}, fmt.Errorf("read the schema: %w", oneLine(err, s.config.Password))
	}
	err = measure(ctx, r.relations, progress,
		func(ctx context.Context, r *relation) error {
			if err := measurePostgres(ctx, db, r); err != nil {
				return err
			}
			table := postgresTable(r)
			completeDictionaries(ctx, db, r, func(column string) string {
				return fmt.Sprintf("SELECT DISTINCT v FROM (SELECT %s AS v FROM %s LIMIT %d) AS t LIMIT %d", postgresText(column, dictionaryChars+1), table, dictionaryRows, dictionaryValues+1)
			}, progress)
			return nil
		},
		func(ctx context.Context, _ error) bool { return db.PingContext(ctx) != nil })
	if err != nil {
		return Content{}, oneLine(err, s.config.Password)
	}
	return Content{
		Databases: []catalog.Database{{Name: r.database, Dialect: catalog.Postgres, DefaultSchema: "public"}},
		Objects:   flatten(r.relations),
	}, nil
}

type postgresReader struct {
	database  string
	relations []*relation
	byOID     map[int64]*relation
}

// read takes all from one transaction, so that the parts fit together.
func (r *postgresReader) read(ctx context.Context, db *sql.DB, progress func(string)) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing was written
	if err := tx.QueryRowContext(ctx, "SELECT current_database()").Scan(&r.database); err != nil {
		return err
	}
	progress("reading the schemas of " + r.database)
	for _, step := range []func(context.Context, *sql.Tx) error{r.tables, r.columns, r.keys, r.foreignKeys} {
		if err := step(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func (r *postgresReader) tables(ctx context.Context, tx *sql.Tx) error {
	partitions := map[int64][]catalog.Ref{}
	err := each(ctx, tx, func(scan func(...any) error) error {
		var oid, parent int64
		var schema, name, kind, comment, definition string
		if err := scan(&oid, &schema, &name, &kind, &comment, &definition, &parent); err != nil {
			return err
		}
		rel := newRelation(catalog.TableRef(r.database, schema, name), comment)
		rel.object.Table.SQLView = strings.TrimSpace(definition)
		rel.stored = kind != "v" && kind != "f" && kind != "m"
		r.relations = append(r.relations, rel)
		r.byOID[oid] = rel
		if parent != 0 {
			partitions[parent] = append(partitions[parent], rel.object.Ref)
		}
		return nil
	}, `SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text, coalesce(obj_description(c.oid, 'pg_class'), ''),
			CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) ELSE '' END,
			CASE WHEN c.relispartition THEN (SELECT i.inhparent::bigint FROM pg_inherits i WHERE i.inhrelid = c.oid) ELSE 0 END
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		ORDER BY n.nspname, c.relname`)
	for parent, children := range partitions {
		if rel := r.byOID[parent]; rel != nil {
			rel.object.Table.Partitions = children
		}
	}
	return err
}

func (r *postgresReader) columns(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(scan func(...any) error) error {
		var oid int64
		var name, typ, comment string
		var notNull, text, bytes bool
		if err := scan(&oid, &name, &typ, &notNull, &comment, &text, &bytes); err != nil {
			return err
		}
		holds := holdsOther
		switch {
		case bytes:
			holds = holdsBytes
		case text:
			holds = holdsText
		}
		if rel := r.byOID[oid]; rel != nil {
			rel.add(name, comment, holds, catalog.Column{Type: typ, NotNull: notNull})
		}
		return nil
	}, `SELECT a.attrelid::bigint, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
			coalesce(col_description(a.attrelid, a.attnum), ''), t.typcategory IN ('S', 'E'), 'bytea'::regtype IN (t.oid, t.typbasetype)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		ORDER BY a.attrelid, a.attnum`)
}

// nameList is a list of column names as a query returns it.
type nameList []string

// Scan reads a JSON array.
func (n *nameList) Scan(v any) error {
	switch v := v.(type) {
	case string:
		return json.Unmarshal([]byte(v), n)
	case []byte:
		return json.Unmarshal(v, n)
	}
	return fmt.Errorf("a list of names arrived as %T", v)
}

// keys reads unique indexes, which stand behind every primary key and unique constraint too. One over an expression
// or over some of the rows makes no column unique.
func (r *postgresReader) keys(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(scan func(...any) error) error {
		var oid int64
		var primary bool
		var columns nameList
		if err := scan(&oid, &primary, &columns); err != nil {
			return err
		}
		rel := r.byOID[oid]
		switch {
		case rel == nil:
		case primary:
			rel.object.Table.PrimaryKey = columns
		default:
			rel.object.Table.UniqueKeys = append(rel.object.Table.UniqueKeys, columns)
		}
		return nil
	}, `SELECT i.indrelid::bigint, i.indisprimary, (SELECT json_agg(a.attname ORDER BY k.at)::text
			FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(number, at)
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE k.at <= i.indnkeyatts)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
		ORDER BY i.indrelid, c.relname`)
}

// foreignKeys leaves out the keys that PostgreSQL adds for each partition of a referenced table.
func (r *postgresReader) foreignKeys(ctx context.Context, tx *sql.Tx) error {
	return each(ctx, tx, func(scan func(...any) error) error {
		var from, to int64
		var columns, toColumns nameList
		if err := scan(&from, &to, &columns, &toColumns); err != nil {
			return err
		}
		rel, target := r.byOID[from], r.byOID[to]
		if rel != nil && target != nil {
			rel.object.Table.ForeignKeys = append(rel.object.Table.ForeignKeys,
				catalog.ForeignKey{Columns: columns, To: target.object.Ref, ToColumns: toColumns})
		}
		return nil
	}, `SELECT k.conrelid::bigint, k.confrelid::bigint,
			(SELECT json_agg(a.attname ORDER BY u.at)::text FROM unnest(k.conkey) WITH ORDINALITY AS u(number, at)
				JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number),
			(SELECT json_agg(a.attname ORDER BY u.at)::text FROM unnest(k.confkey) WITH ORDINALITY AS u(number, at)
				JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number)
		FROM pg_constraint k
		WHERE k.contype = 'f' AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = k.conparentid AND p.conrelid = k.conrelid)
		ORDER BY k.conrelid, k.conname`)
}

func measurePostgres(ctx context.Context, db *sql.DB, r *relation) error {
	table := postgresTable(r)
	var columns []string
	for i, c := range r.columns {
		if r.holds[i] == holdsBytes {
			columns = append(columns, fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN 0 END", pgx.Identifier{c.Ref.Column}.Sanitize()))
		} else {
			columns = append(columns, postgresText(c.Ref.Column, sampleChars+1))
		}
	}
	whole, err := sample(ctx, db, fmt.Sprintf("SELECT %s FROM %s LIMIT %d", strings.Join(columns, ", "), table, sampleLimit(len(columns))), r)
	if err != nil || whole {
		return err
	}
	r.object.Table.Rows, err = countUpTo(ctx, db, fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s LIMIT %d) AS t", table, serverMaxCount+1), serverMaxCount)
	if err != nil {
		return err
	}
	if r.object.Table.Rows == nil {
		if r.object.Table.Rows, err = plannedRows(ctx, db, table); err != nil {
			return err
		}
	}
	return analysed(ctx, db, r)
}

func postgresTable(r *relation) string {
	return pgx.Identifier{r.object.Ref.Schema, r.object.Ref.Table}.Sanitize()
}

// postgresText reads a column as text of so many characters.
func postgresText(column string, chars int) string {
	return fmt.Sprintf("left(%s::text, %d)", pgx.Identifier{column}.Sanitize(), chars)
}

// plannedRows is the planner's estimate, which follows the size of the table also where it was never analysed.
func plannedRows(ctx context.Context, db *sql.DB, table string) (*int64, error) {
	var text string
	if err := db.QueryRowContext(ctx, "EXPLAIN (FORMAT JSON) SELECT FROM "+table).Scan(&text); err != nil {
		return nil, err
	}
	var plans []struct {
		Plan struct {
			Rows *float64 `json:"Plan Rows"`
		}
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		return nil, fmt.Errorf("read the planner's answer: %w", err)
	}
	if len(plans) == 0 || plans[0].Plan.Rows == nil {
		return nil, errors.New("the planner's answer holds no number of rows")
	}
	n := int64(*plans[0].Plan.Rows)
	return &n, nil
}

// analysed takes what ANALYZE found over the whole table in place of what the first rows show.
func analysed(ctx context.Context, db *sql.DB, r *relation) error {
	rows, err := db.QueryContext(ctx, `SELECT attname::text, null_frac, n_distinct, coalesce(to_json(most_common_vals::text::text[])::text, '[]')
		FROM pg_stats WHERE schemaname = $1 AND tablename = $2 ORDER BY inherited`, r.object.Ref.Schema, r.object.Ref.Table)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var nulls, distinct float64
		var common nameList
		if err := rows.Scan(&name, &nulls, &distinct, &common); err != nil {
			return err
		}
		for i, o := range r.columns {
			if o.Ref.Column != name {
				continue
			}
			o.Column.NullShare = &nulls
			if distinct < 0 && r.object.Table.Rows != nil { // a share of the rows
				distinct *= -float64(*r.object.Table.Rows)
			}
			if distinct > 0 {
				n := int64(distinct)
				o.Column.Distinct = &n
			}
			if r.holds[i] != holdsBytes {
				o.Column.Samples = samples(append(common, o.Column.Samples...))
			}
			if r.holds[i] == holdsText && distinct == float64(len(common)) {
				o.Column.Dictionary = dictionary(common) // they are all there is
			}
		}
	}
	return rows.Err()
}

// each runs a query and hands each row's scan to one.
func each(ctx context.Context, tx *sql.Tx, one func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := one(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
