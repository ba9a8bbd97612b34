package generate

import (
	"strings"
	"testing"

	"github.com/schemagate/schemagate/catalog"
)

func TestBindQualifiesTheColumnsThatStandAlone(t *testing.T) {
	var objects []catalog.Object
	for table, columns := range map[string]string{"orders": "id amount status group year region", "stores": "store_id region"} {
		objects = append(objects, catalog.Object{Ref: catalog.TableRef("shop", "", table), Table: &catalog.Table{}})
		for i, c := range strings.Fields(columns) {
			objects = append(objects, catalog.Object{Ref: catalog.ColumnRef("shop", "", table, c), Column: &catalog.Column{Position: i}})
		}
	}
	s, err := catalog.Build([]catalog.Database{{Name: "shop", Dialect: catalog.SQLite}}, objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dialect catalog.Dialect
		sql     string
		want    string // empty if it is no use
		because string
	}{
		{catalog.SQLite, "SUM(amount)", "SUM(orders.amount)", "a column"},
		{catalog.SQLite, "sum( Amount )", "sum( orders.Amount )", "in another letter case"},
		{catalog.SQLite, "SUM(orders.amount) / shop.orders.id", "SUM(orders.amount) / shop.orders.id", "qualified ones stay"},
		{catalog.SQLite, `MAX("group")`, `MAX(orders."group")`, "in quotes"},
		{catalog.MySQL, "MAX(`group`)", "MAX(orders.`group`)", "in MySQL's quotes"},
		{catalog.MySQL, `status = "id"`, `orders.status = "id"`, "MySQL's double quotes hold text"},
		{catalog.MySQL, `status = 'a\'id' OR id = 1`, `orders.status = 'a\'id' OR orders.id = 1`, "an escaped quote ends nothing"},
		{catalog.SQLite, "status = 'it''s id' AND id > 0", "orders.status = 'it''s id' AND orders.id > 0", "texts stay"},
		{catalog.SQLite, "CAST(amount AS year)", "CAST(orders.amount AS year)", "types stay"},
		{catalog.Postgres, "amount::year", "orders.amount::year", "PostgreSQL's casts stay"},
		{catalog.SQLite, "year(amount)", "year(orders.amount)", "functions stay"},
		{catalog.SQLite, "id IN ( SELECT id FROM (x) WHERE id > 1) AND id < 5", "orders.id IN ( SELECT id FROM (x) WHERE id > 1) AND orders.id < 5", "subqueries have a scope of their own"},
		{catalog.SQLite, "SUM(unknown)", "SUM(unknown)", "what is no column stays"},
		{catalog.SQLite, "MAX(region)", "", "two tables have it"},
		{catalog.SQLite, "SUM(amount", "", "an open parenthesis"},
		{catalog.SQLite, "amount) + (id", "", "a parenthesis too many"},
		{catalog.SQLite, "status = 'x", "", "an open quote"},
		{catalog.SQLite, "amount -- id", "", "a comment"},
		{catalog.SQLite, "amount /* id */", "", "a comment"},
		{catalog.SQLite, "amount; DROP", "", "a second statement"},
		{catalog.Postgres, `status = E'\' OR id'`, "", "a text with its own rules of escape"},
	} {
		all := func(uint32) bool { return true }
		got, err := newBinder(c.dialect, s, []uint32{0, 1}, all).bind(c.sql)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %s: %q, %v, want %q", c.because, c.sql, got, err, c.want)
		}
	}
	if got, err := newBinder(catalog.SQLite, s, []uint32{0, 1}, func(id uint32) bool { return s.Object(id).Ref.Table == "orders" }).bind("MAX(region)"); got != "MAX(orders.region)" {
		t.Errorf("a hidden column is no rival: %q, %v", got, err)
	}
}
