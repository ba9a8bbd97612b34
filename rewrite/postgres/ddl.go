package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
)

// Objects reads the tables and SQL views that DDL creates, as a dump writes it, with their columns, keys, comments,
// partitions and inheritance, as the catalog of a database of that name. It ignores all other statements, data, and
// what does not parse on its own. The error says where the text cannot be split into statements.
func (d *Dialect) Objects(database, ddl string) (catalog.Database, []catalog.Object, error) {
	db := catalog.Database{Name: database, Dialect: catalog.Postgres, DefaultSchema: defaultSchema}
	statements, err := split(withoutData(ddl))
	if err != nil {
		return db, nil, fmt.Errorf("postgres: split the DDL of %s into statements: %w", database, err)
	}
	b := builder{database: db, byRef: map[catalog.Ref]*tableDef{}}
	for _, text := range statements {
		result, err := parse(text)
		if err != nil {
			continue
		}
		b.version = result.GetVersion()
		for _, s := range result.GetStmts() {
			b.statement(s.GetStmt())
		}
	}
	return db, b.objects(), nil
}

// withoutData drops what a dump holds beside SQL: rows behind COPY ... FROM stdin, and commands of its client.
func withoutData(ddl string) string {
	var b strings.Builder
	data := false
	for line := range strings.Lines(ddl) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case data:
			data = bare != `\.`
		case strings.HasPrefix(bare, `\`):
		default:
			upper := strings.ToUpper(bare)
			data = strings.HasPrefix(upper, "COPY ") && strings.HasSuffix(strings.TrimSpace(upper), "FROM STDIN;")
			b.WriteString(line)
		}
	}
	return b.String()
}

// split cuts a text at the semicolons that end statements.
func split(text string) ([]string, error) {
	if strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("it holds a NUL character")
	}
	result, err := scanTokens(text)
	if err != nil {
		return nil, err
	}
	var out []string
	start, depth := 0, 0
	for _, t := range result.GetTokens() {
		switch t.Token {
		case pg.Token_ASCII_40:
			depth++
		case pg.Token_ASCII_41:
			depth--
		case pg.Token_ASCII_59:
			if depth <= 0 {
				out = append(out, text[start:t.End])
				start, depth = int(t.End), 0
			}
		}
	}
	return append(out, text[start:]), nil
}

// builder gathers the tables of a database.
type builder struct {
	database catalog.Database
	tables   []*tableDef
	byRef    map[catalog.Ref]*tableDef
	version  int32 // of the parser's trees, which the printer asks for
}

type tableDef struct {
	ref         catalog.Ref
	description string
	table       catalog.Table
	columns     []columnDef
}

type columnDef struct {
	name, description, kind string
	notNull                 bool
}

func (t *tableDef) column(name string) *columnDef {
	for i := range t.columns {
		if t.columns[i].name == name {
			return &t.columns[i]
		}
	}
	return nil
}

func (b *builder) ref(rv *pg.RangeVar) catalog.Ref {
	schema := rv.GetSchemaname()
	if schema == "" {
		schema = b.database.DefaultSchema
	}
	return catalog.TableRef(b.database.Name, schema, rv.GetRelname())
}

// find returns a table that was created, nil if there is none of the name.
func (b *builder) find(ref catalog.Ref) *tableDef { return b.byRef[ref] }

// add enters a table, and returns nil if there is one of the name.
func (b *builder) add(ref catalog.Ref) *tableDef {
	if b.find(ref) != nil {
		return nil
	}
	t := &tableDef{ref: ref}
	b.tables, b.byRef[ref] = append(b.tables, t), t
	return t
}

func (b *builder) statement(n *pg.Node) {
	switch x := n.GetNode().(type) {
	case *pg.Node_CreateStmt:
		b.createTable(x.CreateStmt)
	case *pg.Node_ViewStmt:
		b.createView(x.ViewStmt.View, x.ViewStmt.Aliases, x.ViewStmt.Query, true)
	case *pg.Node_CreateTableAsStmt:
		into := x.CreateTableAsStmt.Into
		b.createView(into.GetRel(), into.GetColNames(), x.CreateTableAsStmt.Query, x.CreateTableAsStmt.Objtype == pg.ObjectType_OBJECT_MATVIEW)
	case *pg.Node_AlterTableStmt:
		if t := b.find(b.ref(x.AlterTableStmt.Relation)); t != nil {
			for _, c := range x.AlterTableStmt.Cmds {
				b.alter(t, c.GetAlterTableCmd())
			}
		}
	case *pg.Node_CommentStmt:
		b.comment(x.CommentStmt)
	}
}

func (b *builder) createTable(s *pg.CreateStmt) {
	if s.Relation.GetRelpersistence() == "t" {
		return
	}
	t := b.add(b.ref(s.Relation))
	if t == nil {
		return
	}
	for _, n := range s.InhRelations {
		b.inherit(t, b.ref(n.GetRangeVar()))
	}
	for _, n := range s.TableElts {
		switch x := n.GetNode().(type) {
		case *pg.Node_ColumnDef:
			b.addColumn(t, x.ColumnDef)
		case *pg.Node_Constraint:
			b.constraint(t, x.Constraint, nil)
		case *pg.Node_TableLikeClause:
			if like := b.find(b.ref(x.TableLikeClause.Relation)); like != nil {
				t.columns = append(t.columns, like.columns...)
			}
		}
	}
}

// inherit makes t a part of another table, whose columns it has.
func (b *builder) inherit(t *tableDef, parent catalog.Ref) {
	p := b.find(parent)
	if p == nil {
		return
	}
	p.table.Partitions = append(p.table.Partitions, t.ref)
	for _, c := range p.columns {
		if t.column(c.name) == nil {
			t.columns = append(t.columns, c)
		}
	}
}

func (b *builder) addColumn(t *tableDef, def *pg.ColumnDef) {
	c := t.column(def.Colname)
	if c == nil {
		t.columns = append(t.columns, columnDef{name: def.Colname})
		c = &t.columns[len(t.columns)-1]
	}
	if def.TypeName != nil {
		c.kind = typeText(def.TypeName)
	}
	c.notNull = c.notNull || def.IsNotNull
	if list, ok := names(def.TypeName.GetNames()); ok && len(list) == 1 && strings.Contains(list[0], "serial") {
		c.notNull = true
	}
	for _, n := range def.Constraints {
		b.constraint(t, n.GetConstraint(), []string{def.Colname})
	}
}

// constraint enters a constraint. of are the columns of one that stands behind a column.
func (b *builder) constraint(t *tableDef, c *pg.Constraint, of []string) {
	columns := func(list []*pg.Node) []string {
		if out, ok := names(list); ok && len(out) > 0 {
			return out
		}
		return of
	}
	switch c.GetContype() {
	case pg.ConstrType_CONSTR_NOTNULL:
		for _, name := range of {
			t.column(name).notNull = true
		}
	case pg.ConstrType_CONSTR_PRIMARY:
		t.table.PrimaryKey = columns(c.Keys)
		for _, name := range t.table.PrimaryKey {
			if col := t.column(name); col != nil {
				col.notNull = true
			}
		}
	case pg.ConstrType_CONSTR_UNIQUE:
		t.table.UniqueKeys = append(t.table.UniqueKeys, columns(c.Keys))
	case pg.ConstrType_CONSTR_FOREIGN:
		to, _ := names(c.PkAttrs)
		t.table.ForeignKeys = append(t.table.ForeignKeys, catalog.ForeignKey{Columns: columns(c.FkAttrs), To: b.ref(c.Pktable), ToColumns: to})
	}
}

func (b *builder) alter(t *tableDef, c *pg.AlterTableCmd) {
	switch c.GetSubtype() {
	case pg.AlterTableType_AT_AddColumn:
		b.addColumn(t, c.Def.GetColumnDef())
	case pg.AlterTableType_AT_DropColumn:
		t.columns = slices.DeleteFunc(t.columns, func(col columnDef) bool { return col.name == c.Name })
	case pg.AlterTableType_AT_SetNotNull:
		if col := t.column(c.Name); col != nil {
			col.notNull = true
		}
	case pg.AlterTableType_AT_AddConstraint:
		b.constraint(t, c.Def.GetConstraint(), nil)
	case pg.AlterTableType_AT_AttachPartition:
		if part := b.find(b.ref(c.Def.GetPartitionCmd().GetName())); part != nil {
			b.inherit(part, t.ref)
		}
	case pg.AlterTableType_AT_AddInherit:
		b.inherit(t, b.ref(c.Def.GetRangeVar()))
	}
}

// createView enters a view with the columns that its query has. What its query reads must have been created before.
func (b *builder) createView(rv *pg.RangeVar, aliases []*pg.Node, query *pg.Node, keepSQL bool) {
	q := query.GetSelectStmt()
	if q == nil || rv.GetRelpersistence() == "t" {
		return
	}
	r := newResolver(b.database, nil, b.known)
	columns, err := r.query(q, nil, nil)
	if err != nil {
		columns = nil
		for _, n := range aliases {
			columns = append(columns, column{name: n.GetString_().GetSval()})
		}
	} else if renamed, ok := rename(columns, aliases); ok {
		columns = renamed
	}
	t := b.add(b.ref(rv))
	if t == nil {
		return
	}
	if keepSQL {
		if len(aliases) > 0 {
			query = renaming(query, rv.GetRelname(), aliases)
		}
		t.table.SQLView, _ = (&tree{result: &pg.ParseResult{Version: b.version, Stmts: []*pg.RawStmt{{Stmt: query}}}}).Print()
		if t.table.SQLView == "" {
			t.table.SQLView = "-- cannot be printed" // but is a view all the same
		}
	}
	for _, c := range columns {
		def := columnDef{name: c.name}
		if c.made != nil && c.made.ref != nil {
			if from := b.find(c.made.ref.TableRef()); from != nil && from.column(c.made.ref.Column) != nil {
				def.kind = from.column(c.made.ref.Column).kind
			}
		}
		if t.column(c.name) == nil {
			t.columns = append(t.columns, def)
		}
	}
}

// renaming is a query that gives the columns of another other names, as a view's list of columns does.
func renaming(query *pg.Node, view string, columns []*pg.Node) *pg.Node {
	all := pg.MakeColumnRefNode([]*pg.Node{pg.MakeAStarNode()}, 0)
	return selectNode(&pg.SelectStmt{
		TargetList: []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: all}}}},
		FromClause: []*pg.Node{{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: query, Alias: &pg.Alias{Aliasname: view, Colnames: columns},
		}}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	})
}

// known is the tables that were created so far.
func (b *builder) known(u *use, name string) (*item, error) {
	t := b.find(u.ref)
	if t == nil {
		return nil, acl.NotAvailable(name, "not created yet")
	}
	it := &item{}
	for _, c := range t.columns {
		ref := catalog.ColumnRef(t.ref.Database, t.ref.Schema, t.ref.Table, c.name)
		it.columns = append(it.columns, column{name: c.name, ref: &ref, made: &source{ref: &ref}})
	}
	return it, nil
}

func (b *builder) comment(s *pg.CommentStmt) {
	parts, ok := names(s.Object.GetList().GetItems())
	if !ok {
		return
	}
	at := func(path []string) *tableDef {
		switch len(path) {
		case 1:
			return b.find(catalog.TableRef(b.database.Name, b.database.DefaultSchema, path[0]))
		case 2:
			return b.find(catalog.TableRef(b.database.Name, path[0], path[1]))
		}
		return nil
	}
	switch s.Objtype {
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW:
		if t := at(parts); t != nil {
			t.description = s.Comment
		}
	case pg.ObjectType_OBJECT_COLUMN:
		if len(parts) < 2 {
			return
		}
		if t := at(parts[:len(parts)-1]); t != nil {
			if c := t.column(parts[len(parts)-1]); c != nil {
				c.description = s.Comment
			}
		}
	}
}

func (b *builder) objects() []catalog.Object {
	var out []catalog.Object
	for _, t := range b.tables {
		table := t.table
		for i, fk := range table.ForeignKeys {
			if to := b.find(fk.To); len(fk.ToColumns) == 0 && to != nil {
				table.ForeignKeys[i].ToColumns = slices.Clone(to.table.PrimaryKey)
			}
		}
		// A key that names columns which are not there, or not as many, says nothing that a reader could use.
		table.ForeignKeys = slices.DeleteFunc(table.ForeignKeys, func(fk catalog.ForeignKey) bool { return len(fk.Columns) != len(fk.ToColumns) })
		absent := func(name string) bool { return t.column(name) == nil }
		if slices.ContainsFunc(table.PrimaryKey, absent) {
			table.PrimaryKey = nil
		}
		table.UniqueKeys = slices.DeleteFunc(table.UniqueKeys, func(k []string) bool { return slices.ContainsFunc(k, absent) })
		out = append(out, catalog.Object{Ref: t.ref, Description: t.description, Table: &table})
		for i, c := range t.columns {
			out = append(out, catalog.Object{
				Ref:         catalog.ColumnRef(t.ref.Database, t.ref.Schema, t.ref.Table, c.name),
				Description: c.description,
				Column:      &catalog.Column{Type: c.kind, Position: i, NotNull: c.notNull},
			})
		}
	}
	return out
}

// typeText writes a type as PostgreSQL's format_type does.
func typeText(t *pg.TypeName) string {
	list, _ := names(t.GetNames())
	if len(list) == 0 {
		return ""
	}
	name := list[len(list)-1]
	if len(list) == 1 || list[0] == "pg_catalog" {
		if long, ok := longNames[name]; ok {
			name = long
		}
	} else {
		name = quoteIfNeeded(list[0]) + "." + quoteIfNeeded(name)
	}
	var mods []string
	for _, m := range t.GetTypmods() {
		if i, ok := m.GetAConst().GetVal().(*pg.A_Const_Ival); ok {
			mods = append(mods, strconv.Itoa(int(i.Ival.GetIval())))
		}
	}
	if len(mods) > 0 && name != "interval" {
		head, tail, _ := strings.Cut(name, " with")
		if tail != "" {
			tail = " with" + tail
		}
		name = head + "(" + strings.Join(mods, ",") + ")" + tail
	}
	return name + strings.Repeat("[]", len(t.GetArrayBounds()))
}

func quoteIfNeeded(name string) string {
	if strings.ContainsFunc(name, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
		return quoted(name)
	}
	return name
}

// longNames are the SQL names of types whose names in the parser's tree are others.
var longNames = map[string]string{
	"int2": "smallint", "int4": "integer", "int8": "bigint", "bool": "boolean", "float4": "real", "float8": "double precision",
	"bpchar": "character", "varchar": "character varying", "varbit": "bit varying",
	"time": "time without time zone", "timetz": "time with time zone",
	"timestamp": "timestamp without time zone", "timestamptz": "timestamp with time zone",
	"serial": "integer", "serial4": "integer", "bigserial": "bigint", "serial8": "bigint", "smallserial": "smallint", "serial2": "smallint",
}
