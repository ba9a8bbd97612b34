package casbin_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/acl/casbin"
	"github.com/schemagate/schemagate/catalog"
)

// warehouse makes tables of 50 columns, 20 tables a schema.
func warehouse(b *testing.B, tables int) *catalog.Snapshot {
	var objects []catalog.Object
	for i := range tables {
		r := catalog.TableRef("dw", fmt.Sprintf("s%d", i/20), fmt.Sprintf("t%d", i))
		objects = append(objects, catalog.Object{Ref: r, Table: &catalog.Table{}})
		for j := range 50 {
			objects = append(objects, catalog.Object{
				Ref: catalog.ColumnRef(r.Database, r.Schema, r.Table, fmt.Sprintf("c%d", j)), Column: &catalog.Column{Position: j}})
		}
	}
	s, err := catalog.Build([]catalog.Database{{Name: "dw", Dialect: catalog.Postgres}}, objects)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// rulebook makes rules for ten roles, all of which the principal has: on schemas, tables, columns and with stars.
func rulebook(b *testing.B, rules, tables int) *acl.Policy {
	var t strings.Builder
	t.WriteString("version: 1\nprincipals: {p: {roles: [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9]}}\ngrants:\n")
	for i := range rules {
		n := i * 7 % tables
		at := fmt.Sprintf("dw.s%d", n/20)
		switch i % 5 {
		case 1, 2:
			at += fmt.Sprintf(".t%d", n)
		case 3:
			at += fmt.Sprintf(".t%d.c%d", n, i%50)
		case 4:
			at += fmt.Sprintf(".t%d*.c1*", n)
		}
		effect := "allow"
		if i >= 10 && i%10 > 7 {
			effect = "deny"
		}
		fmt.Fprintf(&t, "- {role: r%d, %s: [%q], actions: [view, query]}\n", i%10, effect, at)
	}
	p, err := acl.ParsePolicy("p.yaml", []byte(t.String()))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func sizes(b *testing.B, run func(*testing.B, *acl.Policy, *catalog.Snapshot)) {
	for _, n := range []struct{ tables, rules int }{{20, 10}, {200, 100}, {2000, 1000}} {
		s, p := warehouse(b, n.tables), rulebook(b, n.rules, n.tables)
		b.Run(fmt.Sprintf("columns=%d/rules=%d", n.tables*50, n.rules), func(b *testing.B) { run(b, p, s) })
	}
}

func load(b *testing.B, p *acl.Policy, s *catalog.Snapshot) *casbin.Engine {
	e, err := casbin.New(p, s)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func see(b *testing.B, e *casbin.Engine) acl.View {
	v, err := e.View("p")
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// BenchmarkNew loads a policy: once for each policy and snapshot.
func BenchmarkNew(b *testing.B) {
	sizes(b, func(b *testing.B, p *acl.Policy, s *catalog.Snapshot) {
		for b.Loop() {
			load(b, p, s)
		}
	})
}

// BenchmarkCompile makes the first view of a role set.
func BenchmarkCompile(b *testing.B) {
	sizes(b, func(b *testing.B, p *acl.Policy, s *catalog.Snapshot) {
		for b.Loop() {
			b.StopTimer()
			e := load(b, p, s)
			b.StartTimer()
			see(b, e)
		}
	})
}

// BenchmarkView makes the views after the first.
func BenchmarkView(b *testing.B) {
	sizes(b, func(b *testing.B, p *acl.Policy, s *catalog.Snapshot) {
		e := load(b, p, s)
		see(b, e)
		for b.Loop() {
			see(b, e)
		}
	})
}

// BenchmarkEnforce asks Casbin for one object, for comparison.
func BenchmarkEnforce(b *testing.B) {
	sizes(b, func(b *testing.B, p *acl.Policy, s *catalog.Snapshot) {
		e := load(b, p, s)
		for b.Loop() {
			if _, err := e.Enforce("p", acl.ActionView, s.Object(uint32(s.Len()-1)).Ref); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkManyRules reads and loads 100,000 rules over 100,000 columns, as a Casbin deployment would bring them.
func BenchmarkManyRules(b *testing.B) {
	const tables = 2000
	s := warehouse(b, tables)
	var t strings.Builder
	for i := range 100_000 {
		n := i * 7 % tables
		fmt.Fprintf(&t, "p, r%d, dw.s%d.t%d.c%d, read\n", i%1000, n/20, n, i%50)
	}
	for i := range 1000 {
		fmt.Fprintf(&t, "g, u%d, r%d\n", i, i)
	}
	text := []byte(t.String())
	for b.Loop() {
		p, err := acl.ParseCSV("policy.csv", text)
		if err != nil {
			b.Fatal(err)
		}
		load(b, p, s)
	}
}

// BenchmarkManyPrincipals makes the views of 10,000 principals with role sets of their own and reports what memory they keep.
func BenchmarkManyPrincipals(b *testing.B) {
	const tables, principals = 2000, 10_000
	s := warehouse(b, tables)
	var t strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&t, "p, r%d, dw.s%d, read\np, r%d, dw.s%d.t%d.c1, read, deny\n", i, i%100, i, i%100, i%100*20)
	}
	for i := range principals {
		fmt.Fprintf(&t, "g, u%d, r%d\ng, u%d, r%d\ng, u%d, r%d\n", i, i%1000, i, (i*7+i/1000)%1000, i, (i*13+i/100)%1000)
	}
	p, err := acl.ParseCSV("policy.csv", []byte(t.String()))
	if err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		e := load(b, p, s)
		views := make([]acl.View, 0, principals)
		for i := range principals {
			v, err := e.View(fmt.Sprintf("u%d", i))
			if err != nil {
				b.Fatal(err)
			}
			views = append(views, v)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		runtime.KeepAlive(views)
	}
}
