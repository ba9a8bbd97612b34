//go:build unix

package audit_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/schemagate/schemagate/acl/audit"
)

// kinds writes a log that holds a record of every kind, and returns them, the oldest first.
func kinds(t testing.TB) (path string, records []audit.Record) {
	t.Helper()
	path = oldLog(t, 1)
	retain(t, path, day(2))
	l := open(t, path)
	for _, r := range []audit.Record{
		{
			Face: "cli", Action: "ask", Principal: "ana", Tenant: "acme", Roles: []string{"analyst", "emea"}, Question: "how many?", SQL: "SELECT 1 < 2",
			GuardedSQL: "SELECT 1 < 2 AS x", Snapshot: "s1", Policy: "p1", Read: []string{"shop.orders", "shop.orders.id"}, Filters: []string{"shop.orders.region"},
			Output:   []audit.Output{{Name: "x", From: []string{"shop.orders.id"}, Transform: "aggregation"}},
			Returned: []string{"shop.orders"}, Withheld: []string{"shop.staff", "shop.staff"}, Rules: []string{"line 3"}, Outcome: audit.Answered,
			Latency: 12500 * time.Microsecond, Strategy: "whole", Degraded: []string{"embedder"},
		},
		{Face: "rest", Action: "context", Principal: "bot", OnBehalfOf: "ana", Question: "=HYPERLINK(\"x\")", Returned: []string{"metric:net", "shop.orders.id"}, Outcome: audit.Answered},
		{Face: "mcp", Action: "guard", Principal: "bob", SQL: "SELECT ssn FROM staff", Outcome: audit.Refused, Code: "not-available", Detail: "shop.staff.ssn is denied", Withheld: []string{"shop.staff"}},
		{Action: "context", Question: "tungsten", Snapshot: "s1", Outcome: audit.Abstained},
		{Face: "cli", Action: "ask", Principal: "<script>alert(1)</script>", Outcome: audit.Failed, Detail: "a fault"},
		{Face: "cli", Action: "edit", Principal: "eve", Outcome: audit.Answered},
	} {
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for r, err := range audit.List(t.Context(), path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	slices.Reverse(records)
	return path, records
}

func each(records []audit.Record) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func exported(t testing.TB, records []audit.Record, f audit.Format) (text string, n int) {
	t.Helper()
	var b bytes.Buffer
	n, err := audit.Export(&b, each(records), f)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), n
}

func TestExportAsJSONLIsTheLogItself(t *testing.T) {
	path, records := kinds(t)
	if got, n := exported(t, records, audit.JSONL); got != string(read(t, path)) || n != 8 {
		t.Errorf("%d records: %s", n, got)
	}
}

func TestExportAsCSVHasEveryFieldAndNoFormula(t *testing.T) {
	_, records := kinds(t)
	text, n := exported(t, records, audit.CSV)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || n != 8 || len(rows) != 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	cell := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	got := map[string]string{}
	for _, name := range rows[0] {
		got[name] = cell(3, name)
	}
	r := records[2]
	if d := cmp.Diff(map[string]string{
		"seq": "3", "id": r.ID, "time": r.Time.Format(time.RFC3339Nano), "face": "cli", "action": "ask", "principal": "ana", "on_behalf_of": "",
		"tenant": "acme", "roles": `["analyst","emea"]`, "outcome": "answered", "code": "", "detail": "", "question": "how many?", "database": "", "sql": "SELECT 1 < 2",
		"guarded_sql": "SELECT 1 < 2 AS x", "snapshot": "s1", "policy": "p1", "read": `["shop.orders","shop.orders.id"]`, "filters": `["shop.orders.region"]`,
		"output": `[{"name":"x","from":["shop.orders.id"],"transform":"aggregation"}]`, "returned": `["shop.orders"]`, "withheld": `["shop.staff","shop.staff"]`,
		"rules": `["line 3"]`, "strategy": "whole", "degraded": `["embedder"]`, "latency_ms": "12.5", "retention": "", "removed": "", "prev": r.Prev, "hash": r.Hash,
	}, got); d != "" {
		t.Error(d)
	}
	if q := cell(4, "question"); q != `'=HYPERLINK("x")` {
		t.Errorf("a spreadsheet would run %q", q)
	}
	if cell(1, "removed") != records[0].Removed || records[0].Removed == "" {
		t.Error("the record without content does not say so")
	}
	if got := cell(2, "retention"); !strings.Contains(got, `"removed":1`) {
		t.Errorf("the retention is %q", got)
	}
	for f := range reflect.TypeFor[audit.Record]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" && name != "nonce" && !slices.Contains(rows[0], name) {
			t.Errorf("the record's %s is in no column", name)
		}
	}
}

// The attributes that OCSF 1.4 requires of class 6005 and of the objects that it consists of here, and of which it
// requires one.
var (
	required = map[string][]string{
		"":         {"activity_id", "actor", "category_uid", "class_uid", "metadata", "severity_id", "src_endpoint", "time", "type_uid"},
		"metadata": {"product", "version"}, "database": {"type_id"}, "query_info": {"query_string"},
	}
	oneOf = map[string][]string{
		"": {"database", "databucket", "table"}, "actor": {"process", "user", "invoked_by", "session", "app_name", "app_uid"},
		"actor.user": {"account", "name", "uid"}, "src_endpoint": {"ip", "uid", "name", "hostname", "svc_name"},
		"database": {"name", "uid"}, "table": {"name", "uid"}, "query_info": {"name", "uid"}, "metadata.product": {"name", "uid"},
	}
)

func TestExportAsOCSFHasWhatTheClassRequires(t *testing.T) {
	_, records := kinds(t)
	text, n := exported(t, records, audit.OCSF)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if n != 7 || len(lines) != 7 {
		t.Fatalf("%d events for 7 records with content", n)
	}
	type facts struct {
		activity, status, severity int
		user, app, service         string
		database, table, query     string
		decision                   string
	}
	var got []facts
	for _, line := range lines {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		at := func(path string) any {
			var v any = e
			for part := range strings.SplitSeq(path, ".") {
				m, _ := v.(map[string]any)
				if v = m[part]; part == "" {
					v = e
				}
			}
			return v
		}
		for path, names := range required {
			o, _ := at(path).(map[string]any)
			for _, name := range names {
				if _, ok := o[name]; !ok && (o != nil || path == "metadata") {
					t.Errorf("%q lacks %s: %s", path, name, line)
				}
			}
		}
		for path, names := range oneOf {
			o, ok := at(path).(map[string]any)
			if ok && !slices.ContainsFunc(names, func(name string) bool { return o[name] != nil && o[name] != "" }) {
				t.Errorf("%q has none of %v: %s", path, names, line)
			}
		}
		number := func(path string) int { f, _ := at(path).(float64); return int(f) }
		text := func(path string) string { s, _ := at(path).(string); return s }
		if number("class_uid") != 6005 || number("category_uid") != 6 || number("type_uid") != 600500+number("activity_id") || text("metadata.version") != "1.4.0" {
			t.Errorf("the class is another: %s", line)
		}
		f := facts{
			number("activity_id"), number("status_id"), number("severity_id"), text("actor.user.name"), text("actor.app_name"), text("src_endpoint.svc_name"),
			text("database.name"), text("table.name"), text("query_info.query_string"), "",
		}
		if a, ok := at("actor.authorizations").([]any); ok {
			f.decision = a[0].(map[string]any)["decision"].(string)
		}
		got = append(got, f)
	}
	want := []facts{
		{7, 1, 1, "keeper", "", "unknown", "catalog", "", "", "allowed"},
		{4, 1, 1, "ana", "", "cli", "shop", "shop.orders", "SELECT 1 < 2 AS x", "allowed"},
		{8, 1, 1, "ana", "bot", "rest", "shop", "", "", "allowed"},
		{4, 2, 2, "bob", "", "mcp", "catalog", "", "SELECT ssn FROM staff", "denied"},
		{8, 1, 1, "unknown", "", "unknown", "catalog", "", "", "allowed"},
		{4, 2, 3, "<script>alert(1)</script>", "", "cli", "catalog", "", "", ""},
		{99, 1, 1, "eve", "", "cli", "catalog", "", "", "allowed"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(facts{})); d != "" {
		t.Error(d)
	}
}

func TestUnknownFormatIsAnError(t *testing.T) {
	if _, err := audit.Export(&bytes.Buffer{}, each(nil), "xml"); err == nil {
		t.Error("it was not")
	}
}

func TestSummaryCountsByDayOutcomePrincipalCodeAndObject(t *testing.T) {
	_, records := kinds(t)
	records[7].Time = day(4)
	records = append(records[:2], records[7], records[4])
	records[1].Time, records[3].Time = day(4), day(4)
	s, err := audit.Summarize(each(records))
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Summary{
		Records: 4, Removed: 1, First: day(1), Last: day(4),
		Days: []audit.Day{
			{Date: "2020-01-01", Count: 1, Removed: 1, By: map[audit.Outcome]int{}},
			{Date: "2020-01-02", By: map[audit.Outcome]int{}},
			{Date: "2020-01-03", By: map[audit.Outcome]int{}},
			{Date: "2020-01-04", Count: 3, By: map[audit.Outcome]int{"answered": 2, "refused": 1}},
		},
		Outcomes:   []audit.Count{{"answered", 2, 0}, {"refused", 1, 1}},
		Principals: []audit.Count{{"bob", 1, 1}, {"eve", 1, 0}, {"keeper", 1, 0}},
		Codes:      []audit.Count{{"not-available", 1, 1}},
		Withheld:   []audit.Count{{"shop.staff", 1, 1}},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
}

func TestPageIsOneFileThatRunsAndFetchesNothing(t *testing.T) {
	path, records := kinds(t)
	s, err := audit.Summarize(each(records))
	if err != nil {
		t.Fatal(err)
	}
	p := audit.Page{Summary: s, Report: verified(t, path), Log: filepath.Base(path), Checkpoint: "schemagate\n1\nAAAA\n", Made: time.Now()}
	var b bytes.Buffer
	if err := p.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, want := range []string{
		"The log is intact", "content of 1 of them, which retention removed", "not-available", "shop.staff", "ana", "&lt;script&gt;", "default-src 'none'",
		"prefers-color-scheme: dark", `title="2020-01-01: 1 records`, "schemagate\n1\nAAAA",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	for _, not := range []string{"<script", "http://", "https://", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(html, not) {
			t.Errorf("it has %q", not)
		}
	}
	b.Reset()
	p.Report = audit.Report{Faults: []audit.Fault{{Line: 3, What: "moved"}}, More: 2}
	p.Summary = audit.Summary{}
	if err := p.WriteHTML(&b); err != nil || !strings.Contains(b.String(), "altered or damaged") || !strings.Contains(b.String(), "line 3: moved") {
		t.Errorf("%v: %s", err, b.String())
	}
}
