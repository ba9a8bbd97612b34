package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/rewrite"
	"github.com/schemagate/schemagate/rewrite/postgres"
	"github.com/schemagate/schemagate/rewrite/rewritetest"
)

// A clinic: the asker sees the visits and patients of clinic 1, no social security numbers, no vault, first letters of
// notes and half of the fees.
const clinicDDL = `CREATE TABLE ward (id int PRIMARY KEY, name text, head int);
CREATE TABLE patient (id int PRIMARY KEY, clinic int, ward_id int REFERENCES ward, name varchar(30), ssn text, born date, facts jsonb, tags text[]);
CREATE TABLE visit (id int PRIMARY KEY, clinic int, patient_id int, fee numeric(10,2), at timestamp, note text, ok boolean);
CREATE TABLE vault (id int, val text);
CREATE SCHEMA archive;
CREATE TABLE archive.visit (id int, fee numeric(10,2));
CREATE TABLE event (id int, clinic int, day date) PARTITION BY RANGE (day);
CREATE TABLE event_2024 PARTITION OF event FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE event_2025 PARTITION OF event FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE "Ward" (id int, "Name" text);
CREATE VIEW costly AS SELECT id, patient_id, fee FROM visit WHERE fee > 20;
CREATE VIEW per_ward AS SELECT w.name, count(p.id) AS n FROM ward w LEFT JOIN patient p ON p.ward_id = w.id GROUP BY w.name;
CREATE VIEW numbers AS SELECT id, ssn FROM patient;
CREATE MATERIALIZED VIEW frozen AS SELECT count(*) AS n FROM visit;
CREATE FUNCTION leak(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
CREATE SEQUENCE counter;
CREATE TYPE mood AS ENUM ('good', 'bad');
`

const clinicRows = `INSERT INTO ward VALUES (1, 'north', 2), (2, 'south', NULL), (3, 'east', 2);
INSERT INTO patient VALUES (1, 1, 1, 'ann', '111', '1980-02-03', '{"a": 1, "b": [1, 2]}', '{x,y}'), (2, 1, 2, 'bob', '222', '1990-05-06', '{"a": null}', '{}'),
  (3, 2, 1, 'cyd', '333', '1970-01-01', '{"a": "s"}', '{y}'), (4, 1, NULL, NULL, '444', NULL, NULL, NULL), (5, 2, 3, 'eve', '555', '2000-12-31', '[]', '{z}');
INSERT INTO visit VALUES (10, 1, 1, 10, '2024-01-05 10:00', 'ache', true), (11, 1, 1, 30, '2024-02-05 11:00', NULL, false), (12, 1, 2, 50.5, '2024-02-07 09:30', 'fever', NULL),
  (13, 2, 3, 900, '2024-03-01 08:00', 'secret', true), (14, 2, 5, 0, '2024-03-02 08:00', 'x', false), (15, 1, 4, 30, '2024-04-01 12:00', 'ache', true), (16, NULL, 1, 7, NULL, 'lost', true);
INSERT INTO vault VALUES (1, 'gold');
INSERT INTO archive.visit VALUES (1, 5), (10, 6);
INSERT INTO event VALUES (1, 1, '2024-05-05'), (2, 2, '2024-06-06'), (3, 1, '2025-05-05');
INSERT INTO "Ward" VALUES (7, 'Odd');
`

const clinicPolicy = `version: 1
principals: {asker: {roles: [reader], attributes: {clinic: 1, wards: [1, 2]}}}
grants:
  - {role: reader, allow: ["*"], actions: [view, query]}
  - {role: reader, deny: [db.public.vault, db.public.patient.ssn]}
row_filters:
  - {table: db.public.patient, roles: [reader], using: "clinic = {{ principal.clinic }} and (ward_id in ({{ principal.wards }}) or ward_id is null)"}
  - {table: db.public.visit, roles: [reader], using: "patient_id in (select p.id from patient p where p.clinic = {{ principal.clinic }}) and clinic is not null"}
  - {table: db.public.event, roles: [reader], using: "clinic = {{ principal.clinic }}"}
masks:
  - {column: db.public.visit.note, roles: [reader], with: partial}
  - {column: db.public.visit.fee, roles: [reader], with: {expression: "fee / 2"}}
`

// clinicPruned is what the policy means.
const clinicPruned = clinicDDL + clinicRows + `DROP VIEW costly, per_ward, numbers;
DROP MATERIALIZED VIEW frozen;
CREATE TABLE visit2 AS SELECT id, clinic, patient_id, fee / 2 AS fee, at, left(note, 1) || '***' AS note, ok FROM visit
  WHERE patient_id IN (SELECT p.id FROM patient p WHERE p.clinic = 1) AND clinic IS NOT NULL;
DROP TABLE visit;
ALTER TABLE visit2 RENAME TO visit;
ALTER TABLE visit ADD PRIMARY KEY (id);
DELETE FROM patient WHERE clinic <> 1 OR ward_id NOT IN (1, 2);
ALTER TABLE patient DROP COLUMN ssn;
DROP TABLE vault;
DELETE FROM event WHERE clinic <> 1;
CREATE VIEW costly AS SELECT id, patient_id, fee FROM visit WHERE fee > 20;
CREATE VIEW per_ward AS SELECT w.name, count(p.id) AS n FROM ward w LEFT JOIN patient p ON p.ward_id = w.id GROUP BY w.name;
CREATE MATERIALIZED VIEW frozen AS SELECT count(*) AS n FROM visit;
`

// harmless are statements that must be let through, and give what the original gives on the pruned database.
var harmless = []struct{ name, sql string }{
	{"arithmetic of dates", "select name, current_date - born > 100, age(timestamp '2024-01-01', born) from patient"},
	{"parts of dates", "select extract(year from born), date_part('month', born), date_trunc('month', at), to_char(at, 'YYYY-MM') from patient p join visit v on v.patient_id = p.id"},
	{"intervals", "select at + interval '1 day', at - make_interval(days => 2, hours => 3) from visit"},
	{"overlapping periods", "select id from visit where (at, at + interval '1 day') overlaps (timestamp '2024-02-05', interval '2 days')"},
	{"time zones", "select at at time zone 'UTC' at time zone 'Europe/Berlin' from visit"},
	{"series of days", "select d::date, count(v.id) from generate_series(timestamp '2024-01-01', '2024-04-01', '1 month') d left join visit v on date_trunc('month', v.at) = d group by 1"},
	{"JSON fields", "select facts -> 'a', facts ->> 'a', facts #> '{b,0}', facts #>> '{b,1}', facts ? 'b' from patient"},
	{"JSON containment and paths", "select id from patient where facts @> '{\"a\": 1}' or facts @? '$.b[*] ? (@ > 1)'"},
	{"JSON subscripts", "select facts['b'][0] from patient"},
	{"JSON elements", "select p.id, e from patient p, jsonb_array_elements(p.facts -> 'b') e where jsonb_typeof(p.facts -> 'b') = 'array'"},
	{"JSON pairs", "select p.id, e.key, e.value from patient p cross join lateral jsonb_each_text(p.facts) as e where p.facts is not null and jsonb_typeof(p.facts) = 'object'"},
	{"JSON records", "select * from jsonb_to_recordset('[{\"a\": 1, \"b\": \"x\"}]') as r(a int, b text)"},
	{"JSON is built", "select jsonb_build_object('id', id, 'tags', tags), json_build_array(id, name) from patient"},
	{"JSON is gathered", "select jsonb_agg(jsonb_build_object('n', note) order by id), json_object_agg(id, ok order by id) from visit"},
	{"arrays", "select tags[1], tags[1:1], array_length(tags, 1), 'y' = any (tags), tags || 'q'::text, array_to_string(tags, '-') from patient"},
	{"array operators", "select id from patient where tags && array['x'] or tags @> '{y}' or tags <@ array['z']"},
	{"unnested arrays with positions", "select p.id, t.tag, t.n from patient p, unnest(p.tags) with ordinality as t(tag, n)"},
	{"arrays of a query", "select w.name, array(select p.name from patient p where p.ward_id = w.id order by p.id) from ward w"},
	{"array literals", "select array[[1, 2], [3, 4]], '{1,2}'::int[], array[]::text[]"},
	{"functions side by side", "select * from rows from (generate_series(1, 2), unnest(array['a', 'b', 'c'])) as r(n, s)"},
	{"strings", "select upper(name), initcap(name), substring(name from 2 for 1), position('n' in name), overlay(name placing 'x' from 1 for 1), trim(both 'a' from name), repeat(name, 2), reverse(name) from patient"},
	{"string patterns", "select name from patient where name like 'a%' escape '!' or name similar to '(b|c)%' or name ~* '^E' or name ^@ 'a' or name ilike any (array['B%', 'x'])"},
	{"substrings by pattern", "select substring(name from 'a(.)'), substring(name similar 'a#\"_#\"%' escape '#'), regexp_replace(name, '[aeiou]', '_', 'g'), (regexp_match(name, 'b'))[1] from patient"},
	{"string concatenation", "select name || ' of ' || coalesce(ward_id::text, 'none'), concat_ws('-', id, name, null), format('%s:%L', id, name) from patient"},
	{"splitting", "select split_part(name, 'n', 1), string_to_array(name, 'n') from patient"},
	{"casts", "select cast(fee as int), fee::float8, fee::numeric(6,1), id::text::varchar(1), '12'::int + id, ok::int, at::date, cast(null as uuid) from visit"},
	{"literals of all kinds", "select B'101', X'1F', 1e3, .5, E'a\\nb', U&'\\0041', $x$it's$x$, 'a'\n'b', true, null"},
	{"a comparison of rows", "select id from visit where (patient_id, fee) < (2, 10) and row(id, ok) is distinct from row(11, false)"},
	{"a row against a subquery", "select id from visit where (patient_id, id) = (select patient_id, max(id) from visit where patient_id = 1 group by patient_id)"},
	{"rows in a subquery", "select id from visit where (patient_id, id) in (select patient_id, min(id) from visit group by patient_id)"},
	{"null tests of rows", "select p.id from patient p where p is not null or p is null"},
	{"a row equals itself", "select count(*) from visit v join visit x on v = x"},
	{"ordered by rows", "select w from ward w order by w desc"},
	{"fields of rows", "select (v).id, (v).fee from visit v"},
	{"rows in aggregates", "select count(v), count(distinct v), array_length(array_agg(v), 1) from visit v"},
	{"a row as JSON without what is hidden", "select to_jsonb(p) - 'facts' from patient p"},
	{"a column that bears the table's name", "select note from (select note as note from visit) note"},
	{"CASE with a subquery", "select case (select count(*) from visit) when 4 then 'four' else 'other' end"},
	{"CASE without ELSE", "select case when ok then 'y' when not ok then 'n' end from visit"},
	{"truth", "select id from visit where ok is not true and (ok is unknown or not ok) is not false"},
	{"DISTINCT ON", "select distinct on (patient_id) patient_id, id from visit order by patient_id, at desc"},
	{"DISTINCT with a star", "select distinct * from ward order by 1"},
	{"grouping sets", "select patient_id, ok, count(*), grouping(patient_id, ok) from visit group by grouping sets ((patient_id, ok), rollup (ok), ())"},
	{"GROUP BY DISTINCT", "select patient_id, ok, count(*) from visit group by distinct rollup (patient_id, ok), rollup (patient_id)"},
	{"grouped by an expression", "select date_trunc('month', at) as m, sum(fee) from visit group by date_trunc('month', at) having sum(fee) > 1 order by m"},
	{"grouped by a key", "select p.id, p.name, p.facts, count(v.id) from patient p left join visit v on v.patient_id = p.id group by p.id"},
	{"HAVING alone", "select count(*) from visit having count(*) > 2"},
	{"aggregates with order and filter", "select string_agg(distinct note, ',' order by note), count(*) filter (where ok), sum(distinct fee), bool_or(ok), every(ok) from visit"},
	{"ordered-set aggregates", "select percentile_cont(0.5) within group (order by fee), mode() within group (order by note), rank(20) within group (order by fee) from visit"},
	{"statistics", "select stddev(fee)::numeric(9,3), variance(fee)::numeric(9,3), corr(id, fee)::numeric(9,3), regr_slope(fee, id)::numeric(9,3) from visit"},
	{"windows", "select id, lag(fee, 1, 0::numeric) over w, first_value(id) over w, ntile(2) over w, sum(fee) over (w rows 1 preceding) from visit window w as (partition by patient_id order by at, id)"},
	{"frames", "select id, sum(fee) over (order by at range between interval '40 days' preceding and current row exclude ties), count(*) over (order by id groups 1 preceding) from visit"},
	{"the best of each group", "select patient_id, id from (select *, row_number() over (partition by patient_id order by fee desc, id) as k from visit) x where k = 1"},
	{"a window over aggregates", "select patient_id, sum(fee), sum(sum(fee)) over (order by patient_id) from visit group by patient_id"},
	{"a recursive tree", "with recursive t(id, depth, path) as (select id, 0, array[id] from ward where head is null union all select w.id, depth + 1, path || w.id from ward w join t on w.head = t.id) select * from t"},
	{"a recursive query with SEARCH", "with recursive t(id, head) as (select id, head from ward union select w.id, w.head from ward w join t on t.head = w.id) search depth first by id set o select id, o from t"},
	{"a recursive query with CYCLE", "with recursive t(id) as (select 1 union all select w.head from ward w join t on w.id = t.id) cycle id set looped using path select id, looped from t"},
	{"two recursive queries", "with recursive a(n) as (select 1 union all select n + 1 from a where n < 3), b(m) as (select n from a union select m + 10 from b where m < 20) select count(*) from b"},
	{"WITH inside WITH", "with a as (with b as (select id from visit) select max(id) as m from b) select m from a"},
	{"WITH in a subquery of an outer query", "select name, (with v as (select * from visit where patient_id = patient.id) select count(*) from v) from patient"},
	{"a WITH query that hides a table inside another", "with ward as (select id, name from patient), x as (select * from ward) select x.name, w.name from x join public.ward w on w.id = x.id"},
	{"set operations in their order", "select id from ward union all select id from patient except select patient_id from visit intersect select 2 order by 1"},
	{"set operations with limits inside", "(select id from visit order by fee desc, id limit 1) union all (select id from visit order by fee, id limit 1)"},
	{"set operations in FROM", "select s.k, count(*) from (select 'v' as k, id from visit union all select 'p', id from patient) s group by s.k"},
	{"VALUES", "values (1, 'a'), (2, 'b') order by 1 desc limit 1"},
	{"joined VALUES", "select v.id, t.label from visit v join (values (true, 'paid'), (false, 'open')) as t(ok, label) using (ok)"},
	{"TABLE in a subquery", "select id from ward where id in (table only ward_ids) or exists (table ward)"},
	{"lateral top rows", "select p.name, x.fee from patient p cross join lateral (select fee from visit v where v.patient_id = p.id order by fee desc, id limit 1) x"},
	{"lateral over a join", "select w.name, l.n from ward w left join patient p on p.ward_id = w.id left join lateral (select count(*) as n from visit where patient_id = p.id) l on true"},
	{"natural join without shared columns", "select count(*) from (select id as a from ward) x natural join (select id as b from patient) y"},
	{"natural joins in a row", "select * from (select id, name from ward) a natural left join (select id, clinic from patient) b natural full join (select id, ok from visit) c"},
	{"USING with a name", "select j.id, p.name from patient p join visit v using (id) as j"},
	{"a full join on an expression of merged columns", "select coalesce(p.id, v.patient_id), count(*) from patient p full join visit v on p.id = v.patient_id group by 1"},
	{"nested joins", "select w.name, p.name, v.id from ward w left join (patient p join visit v on v.patient_id = p.id) on p.ward_id = w.id"},
	{"a join with a name", "select j.name, j.head from (ward w join (select 1 as one) o on w.id = o.one) as j"},
	{"an anti-join", "select p.id from patient p where not exists (select from visit v where v.patient_id = p.id and v.ok)"},
	{"NOT IN with nulls", "select id from ward where id not in (select ward_id from patient)"},
	{"quantified comparisons", "select id from visit where fee >= all (select fee from visit) or id = some (select 10)"},
	{"a subquery in LIMIT", "select id from visit order by id limit (select count(*) from ward) offset (select 1)"},
	{"FETCH", "select id from visit order by id offset 1 row fetch next 2 rows only"},
	{"FETCH WITH TIES", "select fee from visit order by fee fetch first 2 rows with ties"},
	{"LIMIT NULL", "select id from visit order by id limit null"},
	{"ordered by what is not shown", "select id from visit order by at desc nulls last, -fee, note collate \"C\""},
	{"ordered by an operator", "select id from visit order by id using >"},
	{"an alias that is a keyword", "select id as \"from\", fee as \"order\" from visit as \"select\""},
	{"an alias like another table", "select patient.id from ward patient join visit ward on ward.id = patient.id + 9"},
	{"names qualified by database and schema", "select db.public.visit.id from db.public.visit"},
	{"the same name in another schema", "select a.id, v.id from archive.visit a, visit v where a.id = v.id"},
	{"the same name in two schemas, unqualified", "select public.visit.id, archive.visit.fee from archive.visit join public.visit on archive.visit.id = public.visit.id"},
	{"a quoted name of other case", "select w.\"Name\" from \"Ward\" w"},
	{"a partitioned table", "select id, day from event order by day"},
	{"comments everywhere", "select/**/id--x\nfrom/* a /* b */ */visit -- end"},
	{"an operator of a schema", "select id operator(pg_catalog.+) 1 from ward"},
	{"a function of a schema", "select pg_catalog.upper(name) from ward"},
	{"minus and precedence", "select - - id, -id ^ 2, 2 ^ 3 ^ 2, not ok = true, (id + 1) * 2, 7 - (3 - 1), 7 / (2 * 2) from visit"},
	{"bits and remainders", "select id & 3, id | 8, id # 1, ~id, id << 1, id % 4, @ (3 - id) from ward"},
	{"ranges", "select int4range(1, 5) @> id, daterange('2024-01-01', '2024-02-01') && '[2024-01-15,2024-03-01)'::daterange from ward"},
	{"text search", "select id from visit where to_tsvector('simple', note) @@ to_tsquery('simple', 'a')"},
	{"networks", "select '10.1.2.3'::inet << '10.0.0.0/8'::inet, host('10.1.2.3/8'::inet)"},
	{"points", "select point(1, 2) <-> point(4, 6)"},
	{"types of values", "select pg_typeof(fee), pg_typeof(note) from visit limit 1"},
	{"an empty select list", "select from visit"},
	{"nothing but a constant", "select 1 where false"},
	{"a semicolon at the end", "select id from ward;"},
	{"a SQL view", "select * from costly where fee < 100"},
	{"a SQL view that groups", "select name, n from per_ward order by n desc, name"},
	{"a SQL view joined to its table", "select c.id, v.note from costly c join visit v using (id)"},
	{"a materialised view", "select n from frozen"},
	{"a column default of a join", "select coalesce(w.name, '-') from patient p left join ward w on p.ward_id = w.id"},
	{"a filter on the mask", "select id from visit where note = 'a***' and fee = 15"},
	{"grouped by the mask", "select note, count(*) from visit group by note"},
	{"a hidden name as an alias", "select name as ssn from patient order by ssn"},
	{"a hidden table's name as an alias", "select vault.id from ward as vault"},
	{"a hidden table's name as a WITH query", "with vault as (select 1 as val) select val from vault"},
}

// harmful are statements that must be refused.
var harmful = []struct{ name, sql string }{
	{"a hidden column in a function", "select upper(ssn) from patient"},
	{"a hidden column of a row", "select (p).ssn from patient p"},
	{"a hidden column by functional notation", "select ssn(p) from patient p"},
	{"a hidden column in a window", "select rank() over (order by ssn) from patient"},
	{"a hidden column in GROUP BY", "select count(*) from patient group by ssn"},
	{"a hidden column in a USING", "select 1 from patient join (select '1' as ssn) x using (ssn)"},
	{"a hidden column behind an alias list", "select s from patient as p(a, b, c, d, s, e, f, g, h)"},
	{"a hidden column through a view", "select id from numbers"},
	{"a hidden column in FILTER", "select count(*) filter (where ssn > '2') from patient"},
	{"a hidden column in an ON of a lateral join", "select 1 from ward w join lateral (select 1) x on exists (select 1 from patient p where p.ssn = w.name)"},
	{"a hidden column in DISTINCT ON", "select distinct on (ssn) id from patient"},
	{"a hidden column in ORDER BY of an aggregate", "select array_agg(id order by ssn) from patient"},
	{"a hidden table in LIMIT", "select 1 limit (select count(*) from vault)"},
	{"a hidden table in a FROM function", "select * from generate_series(1, (select count(*) from vault))"},
	{"a hidden table in TABLE", "table vault"},
	{"a hidden table in IN TABLE", "select 1 where 1 in (table vault)"},
	{"a hidden table in an unused WITH", "with x as (select * from vault) select 1"},
	{"a hidden table's row type", "select null::vault"},
	{"a hidden table by its name", "select 'vault'::regclass"},
	{"a table's size", "select pg_relation_size('visit')"},
	{"a partition of a protected table", "select * from event_2024"},
	{"another user's function", "select leak(note) from visit"},
	{"another user's function by dot", "select (note).leak from visit"},
	{"a sequence", "select nextval('counter')"},
	{"a sequence's state", "select last_value from counter"},
	{"a setting", "select current_setting('schemagate.hash_key')"},
	{"a setting changed", "select set_config('search_path', 'x', true)"},
	{"the server's version", "select version()"},
	{"the user", "select session_user, current_role"},
	{"the schema", "select current_schema, current_catalog"},
	{"the schemas searched", "select current_schemas(true)"},
	{"the clock of the moment", "select clock_timestamp(), timeofday()"},
	{"a lock", "select pg_advisory_lock(1)"},
	{"a wait", "select pg_sleep_for('1 minute')"},
	{"another process", "select pg_terminate_backend(1)"},
	{"a file", "select pg_read_file('/etc/passwd')"},
	{"a folder", "select * from pg_ls_logdir()"},
	{"a large object", "select lo_import('/etc/passwd')"},
	{"SQL in text", "select query_to_xml('select * from vault', true, true, '')"},
	{"SQL in a cursor", "select cursor_to_xml('c', 1, true, true, '')"},
	{"SQL in text search", "select ts_rewrite('a'::tsquery, 'select val::tsquery, val::tsquery from vault')"},
	{"statistics", "select * from pg_stat_activity"},
	{"the catalog", "select relname from pg_catalog.pg_class"},
	{"the catalog without its schema", "select relname from pg_class"},
	{"the information schema", "select * from information_schema.columns"},
	{"a system column", "select tableoid from visit"},
	{"a system column in an order", "select id from visit order by ctid"},
	{"SELECT INTO", "select * into copied from visit"},
	{"SELECT INTO a temporary table", "select * into temp copied from visit"},
	{"a lock of rows in a subquery", "select * from (select id from visit for update) x"},
	{"a lock without waiting", "select id from visit for no key update skip locked"},
	{"an insertion in WITH", "with x as (insert into ward values (9) returning id) select * from x"},
	{"MERGE", "merge into ward using visit on ward.id = visit.id when matched then delete"},
	{"a call", "call something()"},
	{"TRUNCATE", "truncate visit"},
	{"GRANT", "grant select on vault to public"},
	{"PREPARE", "prepare p as select 1"},
	{"FETCH from a cursor", "fetch all from c"},
	{"SHOW", "show search_path"},
	{"RESET", "reset all"},
	{"NOTIFY", "notify x"},
	{"two statements", "select 1; table vault"},
	{"two statements behind a comment", "select 1 /* ; */ ; drop table visit --"},
	{"a parameter", "select id from visit where id = $1"},
	{"another database", "select * from postgres.public.visit"},
	{"a temporary schema", "select * from pg_temp.x"},
	{"no SQL", "it's"},
	{"nothing", " -- nothing"},
}

func TestShapes(t *testing.T) {
	extra := "CREATE TABLE ward_ids (id int);\n"
	full := freshDatabase(t, "clinic", extra+"INSERT INTO ward_ids VALUES (2);"+clinicDDL+clinicRows)
	pruned := freshDatabase(t, "clinicpruned", extra+"INSERT INTO ward_ids VALUES (2);"+clinicPruned)
	for _, conn := range []*pgx.Conn{full, pruned} {
		if _, err := query(conn, "SET statement_timeout = '5s'"); err != nil {
			t.Fatal(err)
		}
	}
	rewritten := func(sql string) (string, error) {
		d := postgres.New()
		schema, err := rewritetest.NewSchema(d, extra+clinicDDL, clinicPolicy)
		if err != nil {
			t.Fatal(err)
		}
		st, err := rewrite.NewGuard(d, 1000).Rewrite(sql, schema)
		return st.Text(), err
	}
	for _, c := range harmless {
		t.Run(c.name, func(t *testing.T) {
			text, err := rewritten(c.sql)
			if err != nil {
				no, _ := errors.AsType[*acl.Refusal](err)
				t.Fatalf("%s\n%v %+v", c.sql, err, no)
			}
			original := c.sql
			if c.name == "names qualified by database and schema" { // which the test's has another name
				original = "select id from visit"
			}
			want, got := run(pruned, original), run(full, text)
			if want.err != nil || got.err != nil || !slices.Equal(want.rows, got.rows) || !slices.Equal(want.names, got.names) {
				t.Fatalf("%s\n%s\ngot  %v %v %v\nwant %v %v %v", c.sql, text, got.names, got.rows, got.err, want.names, want.rows, want.err)
			}
		})
	}
	for _, c := range harmful {
		t.Run(c.name, func(t *testing.T) {
			text, err := rewritten(c.sql)
			if _, refused := errors.AsType[*acl.Refusal](err); !refused {
				t.Fatalf("%s\nbecame %s (%v)", c.sql, text, err)
			}
		})
	}
}
