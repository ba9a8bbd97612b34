package audit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Format is a form that records can be exported in.
type Format string

// The formats: the records as they stand in the log, a table, or events of the Open Cybersecurity Schema Framework.
const (
	JSONL Format = "jsonl"
	CSV   Format = "csv"
	OCSF  Format = "ocsf"
)

// Formats lists them.
func Formats() []Format { return []Format{JSONL, CSV, OCSF} }

// Export writes records to w, one a line, and returns how many. Records without content are in JSONL and CSV only: OCSF
// has no event for them.
func Export(w io.Writer, records iter.Seq2[Record, error], f Format) (n int, err error) {
	put, flush, err := f.writer(w)
	if err != nil {
		return 0, err
	}
	for r, err := range records {
		if err != nil {
			return n, err
		}
		if f == OCSF && r.Removed != "" {
			continue
		}
		if err := put(r); err != nil {
			return n, fmt.Errorf("export record %s: %w", r.ID, err)
		}
		n++
	}
	return n, flush()
}

func (f Format) writer(w io.Writer) (put func(Record) error, flush func() error, err error) {
	none := func() error { return nil }
	switch f {
	case JSONL:
		return func(r Record) error { return writeLine(w, r) }, none, nil
	case OCSF:
		return func(r Record) error { return writeLine(w, newEvent(r)) }, none, nil
	case CSV:
		c := csv.NewWriter(w)
		if err := c.Write(columns()); err != nil {
			return nil, nil, err
		}
		return func(r Record) error { return c.Write(row(r)) }, func() error { c.Flush(); return c.Error() }, nil
	}
	return nil, nil, fmt.Errorf("there is no format %q; use one of %q", f, Formats())
}

func writeLine(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// column is a column of the CSV.
type column struct {
	name string
	of   func(Record) string
}

var table = [...]column{
	{"seq", func(r Record) string { return strconv.FormatUint(r.Seq, 10) }},
	{"id", func(r Record) string { return r.ID }},
	{"time", func(r Record) string { return r.Time.Format(time.RFC3339Nano) }},
	{"face", func(r Record) string { return r.Face }},
	{"action", func(r Record) string { return r.Action }},
	{"principal", func(r Record) string { return r.Principal }},
	{"on_behalf_of", func(r Record) string { return r.OnBehalfOf }},
	{"tenant", func(r Record) string { return r.Tenant }},
	{"roles", func(r Record) string { return list(r.Roles) }},
	{"outcome", func(r Record) string { return string(r.Outcome) }},
	{"code", func(r Record) string { return r.Code }},
	{"detail", func(r Record) string { return r.Detail }},
	{"question", func(r Record) string { return r.Question }},
	{"database", func(r Record) string { return r.Database }},
	{"sql", func(r Record) string { return r.SQL }},
	{"guarded_sql", func(r Record) string { return r.GuardedSQL }},
	{"snapshot", func(r Record) string { return r.Snapshot }},
	{"policy", func(r Record) string { return r.Policy }},
	{"read", func(r Record) string { return list(r.Read) }},
	{"filters", func(r Record) string { return list(r.Filters) }},
	{"output", func(r Record) string { return list(r.Output) }},
	{"returned", func(r Record) string { return list(r.Returned) }},
	{"withheld", func(r Record) string { return list(r.Withheld) }},
	{"rules", func(r Record) string { return list(r.Rules) }},
	{"strategy", func(r Record) string { return r.Strategy }},
	{"degraded", func(r Record) string { return list(r.Degraded) }},
	{"latency_ms", func(r Record) string {
		return strconv.FormatFloat(float64(r.Latency.Microseconds())/1000, 'f', -1, 64)
	}},
	{"retention", func(r Record) string {
		if r.Retention == nil {
			return ""
		}
		return compact(r.Retention)
	}},
	{"removed", func(r Record) string { return r.Removed }},
	{"prev", func(r Record) string { return r.Prev }},
	{"hash", func(r Record) string { return r.Hash }},
}

func columns() []string {
	out := make([]string, len(table))
	for i, c := range table {
		out[i] = c.name
	}
	return out
}

func row(r Record) []string {
	out := make([]string, len(table))
	for i, c := range table {
		// A spreadsheet would run what begins like a formula, and what stands here was written by anybody.
		if out[i] = c.of(r); out[i] != "" && strings.ContainsRune("=+-@\t\r", rune(out[i][0])) {
			out[i] = "'" + out[i]
		}
	}
	return out
}

// list is a JSON array, since a ref may hold any separator.
func list[T any](values []T) string {
	if len(values) == 0 {
		return ""
	}
	return compact(values)
}

func compact(v any) string {
	var b bytes.Buffer
	if err := writeLine(&b, v); err != nil {
		panic(err) // texts and numbers always encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}
