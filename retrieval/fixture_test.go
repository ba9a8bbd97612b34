package retrieval_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

// draft is a catalog in the making.
type draft struct {
	databases []catalog.Database
	objects   []catalog.Object
}

// database adds a database, to which the tables that follow belong.
func (d *draft) database(name string, dialect catalog.Dialect) *draft {
	d.databases = append(d.databases, catalog.Database{Name: name, Dialect: dialect})
	return d
}

// table adds a table with its columns; a column is "name: description", and one with a star is in the primary key.
func (d *draft) table(name, description string, columns ...string) *draft {
	db := d.databases[len(d.databases)-1].Name
	at := len(d.objects)
	d.objects = append(d.objects, catalog.Object{Ref: catalog.TableRef(db, "", name), Description: description, Table: &catalog.Table{}})
	for i, c := range columns {
		c, about, _ := strings.Cut(c, ": ")
		c, primary := strings.CutSuffix(c, "*")
		if primary {
			d.objects[at].Table.PrimaryKey = append(d.objects[at].Table.PrimaryKey, c)
		}
		d.objects = append(d.objects, catalog.Object{Ref: catalog.ColumnRef(db, "", name, c), Description: about, Column: &catalog.Column{Type: "TEXT", Position: i}})
	}
	return d
}

// key declares a foreign key, as in "orders.customer -> customers.id", both in the last database.
func (d *draft) key(ends string) *draft {
	from, to, _ := strings.Cut(ends, " -> ")
	a, b := d.column(from), d.column(to)
	for i := range d.objects {
		if d.objects[i].Ref == a.TableRef() {
			d.objects[i].Table.ForeignKeys = append(d.objects[i].Table.ForeignKeys, catalog.ForeignKey{Columns: []string{a.Column}, To: b.TableRef(), ToColumns: []string{b.Column}})
		}
	}
	return d
}

// add adds other objects.
func (d *draft) add(objects ...catalog.Object) *draft {
	d.objects = append(d.objects, objects...)
	return d
}

// column reads table.column of the last database, or database.table.column.
func (d *draft) column(dotted string) catalog.Ref {
	path := strings.Split(dotted, ".")
	if len(path) == 2 {
		path = append([]string{d.databases[len(d.databases)-1].Name}, path...)
	}
	return catalog.ColumnRef(path[0], "", path[1], path[2])
}

// pad adds tables about nothing, so that the catalog is too large to be given whole.
func (d *draft) pad(n int) *draft {
	for i := range n {
		d.table(fmt.Sprintf("pad_%c%c", 'a'+i/26, 'a'+i%26), "", "filler_id*", "filler")
	}
	return d
}

func (d *draft) build(t testing.TB) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Build(d.databases, d.objects)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// link asks a question of the whole catalog.
func (d *draft) link(t testing.TB, question string, budget int) retrieval.Context {
	t.Helper()
	s := d.build(t)
	c, err := newSystem(t, s, budget).linker.Link(context.Background(), question, acl.Everything(s))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// names returns the dotted names of a context's objects of a kind.
func names(c retrieval.Context, k catalog.Kind) []string {
	var out []string
	for _, it := range c.Items {
		if it.Ref.Kind == k {
			out = append(out, it.Ref.String())
		}
	}
	return out
}

func item(t testing.TB, c retrieval.Context, name string) retrieval.Item {
	t.Helper()
	i := slices.IndexFunc(c.Items, func(it retrieval.Item) bool { return it.Ref.String() == name })
	if i < 0 {
		t.Fatalf("%s is not in the context of %q:\n%s", name, c.Question, c.Text)
	}
	return c.Items[i]
}

// shop sells things: four tables in a chain of keys, one of them a bridge.
func shop() *draft {
	return new(draft).database("shop", catalog.SQLite).
		table("customers", "who buys", "id*", "name", "city: where the customer lives", "birthday").
		table("orders", "what was bought when", "id*", "customer_id", "ordered_on: the day of the order", "status").
		table("order_lines", "", "order_id*", "product_id*", "quantity", "net_amt").
		table("products", "what is sold", "id*", "title", "colour", "weight_kg").
		key("orders.customer_id -> customers.id").key("order_lines.order_id -> orders.id").key("order_lines.product_id -> products.id")
}
