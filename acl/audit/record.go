package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Outcome is how a question ended.
type Outcome string

// The outcomes. A refusal is a no, an abstention is a draft that nobody would vouch for, a failure is a fault.
const (
	Answered  Outcome = "answered"
	Refused   Outcome = "refused"
	Abstained Outcome = "abstained"
	Failed    Outcome = "failed"
)

var outcomes = [...]Outcome{Answered, Refused, Abstained, Failed}

// Record is one decision. It holds what the asker must not learn (Withheld, Detail, Rules), so of all of it only ID
// ever leaves for anyone but an auditor.
type Record struct {
	Seq  uint64    `json:"seq"`
	ID   string    `json:"id"` // random; says nothing about how many records there are
	Time time.Time `json:"time"`

	Face   string `json:"face,omitempty"`   // "cli", "rest", "mcp"
	Action string `json:"action,omitempty"` // "context", "ask", "guard"

	Principal  string   `json:"principal"`
	OnBehalfOf string   `json:"on_behalf_of,omitempty"`
	Tenant     string   `json:"tenant,omitempty"`
	Roles      []string `json:"roles,omitempty"`

	Question   string `json:"question,omitempty"`
	Database   string `json:"database,omitempty"`    // that the statement runs in
	SQL        string `json:"sql,omitempty"`         // the draft, as it came
	GuardedSQL string `json:"guarded_sql,omitempty"` // the statement that the guard made of it

	Snapshot string `json:"snapshot,omitempty"` // version of the catalog
	Policy   string `json:"policy,omitempty"`   // version of the policy

	Read    []string `json:"read,omitempty"`    // refs of the tables and columns that the statement reads
	Filters []string `json:"filters,omitempty"` // refs of the columns by which it chooses rows
	Output  []Output `json:"output,omitempty"`  // what its result columns are made of

	Returned []string `json:"returned,omitempty"` // refs of what the asker was shown
	Withheld []string `json:"withheld,omitempty"` // refs of what would have been relevant but is hidden from them
	Rules    []string `json:"rules,omitempty"`    // places in the policy that decided

	Outcome Outcome `json:"outcome"`
	Code    string  `json:"code,omitempty"`   // of the refusal
	Detail  string  `json:"detail,omitempty"` // its private reason, or the fault

	Latency  time.Duration `json:"-"` // kept to the microsecond; the member is latency_ms
	Strategy string        `json:"strategy,omitempty"`
	Degraded []string      `json:"degraded,omitempty"` // what did not work as configured

	// Nonce is random and goes with the content: once that is removed, or in a proof that leaves it out, nobody can guess
	// it and compare hashes.
	Nonce string `json:"nonce,omitempty"`

	// Retention is what a record with the action "retain" did to records before it.
	Retention *Retention `json:"retention,omitempty"`

	Prev string `json:"prev"` // link of the record before
	Hash string `json:"hash"`

	// Removed is the hash of the record that stood here until [Retain] removed its content. Nothing else but Seq, ID,
	// Time and Prev is left of it.
	Removed string `json:"removed,omitempty"`
}

// Retention is how many records of a log are without content, and which: Stubs is the SHA-256 of their lines, newlines
// included, in order.
type Retention struct {
	Before  time.Time `json:"before"` // what was recorded before this time has lost its content
	Removed int       `json:"removed"`
	Stubs   string    `json:"stubs"`
}

// link is what the next record's Prev names, and what the Merkle tree holds: the hash that the record had when it was
// appended.
func (r Record) link() string {
	if r.Removed != "" {
		return r.Removed
	}
	return r.Hash
}

// Output is a result column of a statement: the refs of the columns that it is made of, and how (identity, transformation
// or aggregation).
type Output struct {
	Name      string   `json:"name"`
	From      []string `json:"from,omitempty"`
	Transform string   `json:"transform"`
}

// plain is a Record whose JSON is what the tags say.
type plain Record

// wire is a Record as it stands in the file. Its Hash takes the place of the embedded one and comes last.
type wire struct {
	plain
	Latency float64  `json:"latency_ms,omitempty"`
	Base64  []string `json:"base64,omitempty"`
	Hash    string   `json:"hash,omitempty"`
}

// stub is a record without content as it stands in the file.
type stub struct {
	Seq     uint64    `json:"seq"`
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Prev    string    `json:"prev"`
	Removed string    `json:"removed"`
	Hash    string    `json:"hash,omitempty"`
}

// MarshalJSON encodes the record as it stands in the log.
func (r Record) MarshalJSON() ([]byte, error) {
	if r.Removed != "" {
		return json.Marshal(stub{r.Seq, r.ID, r.Time, r.Prev, r.Removed, r.Hash})
	}
	w := wire{plain: plain(r), Latency: float64(r.Latency.Microseconds()) / 1000, Hash: r.Hash}
	if p := (*Record)(&w.plain); !p.utf8() {
		for _, list := range []*[]string{&p.Roles, &p.Read, &p.Filters, &p.Returned, &p.Withheld, &p.Rules, &p.Degraded} {
			*list = slices.Clone(*list)
		}
		p.Output = slices.Clone(p.Output)
		for i := range p.Output {
			p.Output[i].From = slices.Clone(p.Output[i].From)
		}
		for _, t := range p.texts() {
			if t.utf8() {
				continue
			}
			w.Base64 = append(w.Base64, t.member)
			for _, v := range t.values {
				*v = base64.StdEncoding.EncodeToString([]byte(*v))
			}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // SQL is full of < and >, and people read this file
	if err := e.Encode(w); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON decodes what MarshalJSON wrote.
func (r *Record) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*r = Record(w.plain)
	r.Hash = w.Hash
	r.Latency = time.Duration(math.Round(w.Latency*1000)) * time.Microsecond
	if len(w.Base64) == 0 {
		return nil
	}
	for _, t := range r.texts() {
		if !slices.Contains(w.Base64, t.member) {
			continue
		}
		for _, v := range t.values {
			raw, err := base64.StdEncoding.DecodeString(*v)
			if err != nil {
				return fmt.Errorf("member %s: %w", t.member, err)
			}
			*v = string(raw)
		}
	}
	return nil
}

// text is a member that holds what others wrote.
type text struct {
	member string
	values []*string
}

func (t text) utf8() bool {
	return !slices.ContainsFunc(t.values, func(v *string) bool { return !utf8.ValidString(*v) })
}

func (r *Record) utf8() bool {
	return !slices.ContainsFunc(r.texts(), func(t text) bool { return !t.utf8() })
}

func (r *Record) texts() []text {
	one := func(member string, v *string) text { return text{member, []*string{v}} }
	list := func(member string, vs []string) text {
		t := text{member: member}
		for i := range vs {
			t.values = append(t.values, &vs[i])
		}
		return t
	}
	output := text{member: "output"}
	for i := range r.Output {
		o := &r.Output[i]
		output.values = append(append(output.values, &o.Name, &o.Transform), list("", o.From).values...)
	}
	return []text{
		one("face", &r.Face), one("action", &r.Action),
		one("principal", &r.Principal), one("on_behalf_of", &r.OnBehalfOf), one("tenant", &r.Tenant), list("roles", r.Roles),
		one("question", &r.Question), one("database", &r.Database), one("sql", &r.SQL), one("guarded_sql", &r.GuardedSQL),
		one("snapshot", &r.Snapshot), one("policy", &r.Policy),
		list("read", r.Read), list("filters", r.Filters), output,
		list("returned", r.Returned), list("withheld", r.Withheld), list("rules", r.Rules),
		one("code", &r.Code), one("detail", &r.Detail), one("strategy", &r.Strategy), list("degraded", r.Degraded),
	}
}

// maxLine is the most bytes that a record's line may have. It bounds what a reader holds of a damaged file.
const maxLine = 16 << 20

const (
	hashStart = `,"hash":"`
	hashEnd   = `"}`
	hashPart  = len(hashStart) + 2*sha256.Size + len(hashEnd)
)

// seal sets the record's hash and returns its line, without the newline.
func seal(r *Record) ([]byte, error) {
	r.Hash = ""
	b, err := r.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(b)+hashPart > maxLine {
		return nil, fmt.Errorf("a record of %d bytes is over the limit of %d; ask something shorter", len(b), maxLine)
	}
	sum := sha256.Sum256(b)
	r.Hash = hex.EncodeToString(sum[:])
	return slices.Concat(b[:len(b)-1], []byte(hashStart), []byte(r.Hash), []byte(hashEnd)), nil
}

var (
	errNotRecord = errors.New("this is not a record")
	errWrongHash = errors.New("the record's hash does not match its content")
	errLongLine  = fmt.Errorf("%w: the line is longer than %d bytes", errNotRecord, maxLine)
)

// unseal decodes a line and checks its hash. It returns what it could read, and the hash that the line ought to have,
// even if it also returns an error.
func unseal(line []byte) (r Record, want string, err error) {
	return unsealAs(line, (*Record).UnmarshalJSON)
}

// unsealLink is unseal for who needs nothing of a record but its place in the chain. It takes a third of the time.
func unsealLink(line []byte) (r Record, want string, err error) {
	return unsealAs(line, (*Record).unmarshalLink)
}

func (r *Record) unmarshalLink(b []byte) error {
	var link struct {
		Seq       uint64     `json:"seq"`
		Prev      string     `json:"prev"`
		Hash      string     `json:"hash"`
		Removed   string     `json:"removed"`
		Retention *Retention `json:"retention"`
	}
	if err := json.Unmarshal(b, &link); err != nil {
		return err
	}
	if link.Removed != "" { // the rest is short
		return r.UnmarshalJSON(b)
	}
	*r = Record{Seq: link.Seq, Prev: link.Prev, Hash: link.Hash, Retention: link.Retention}
	return nil
}

func unsealAs(line []byte, unmarshal func(*Record, []byte) error) (r Record, want string, err error) {
	cut := len(line) - hashPart
	if cut < 1 {
		return r, "", errNotRecord
	}
	h := sha256.New()
	h.Write(line[:cut])
	h.Write([]byte("}"))
	want = hex.EncodeToString(h.Sum(nil))
	if err := unmarshal(&r, line); err != nil {
		stated := line[cut+len(hashStart) : len(line)-len(hashEnd)]
		return Record{Hash: string(stated)}, want, fmt.Errorf("%w: %w", errNotRecord, err)
	}
	if string(line[cut:]) != hashStart+want+hashEnd {
		return r, want, errWrongHash
	}
	if r.Removed != "" && !r.bare(line) {
		return r, want, fmt.Errorf("%w: it claims to be without content and is not", errNotRecord)
	}
	return r, want, nil
}

// bare reports whether a line holds nothing but what is left of a record without content.
func (r Record) bare(line []byte) bool {
	b, err := r.MarshalJSON()
	sum, bad := hex.DecodeString(r.Removed)
	return err == nil && bytes.Equal(b, line) && bad == nil && len(sum) == sha256.Size
}
