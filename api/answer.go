package api

import (
	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/api/execute"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/rewrite"
)

// Context is the governed context of a question, as faces send it.
type Context struct {
	Question  string `json:"question"`
	Principal string `json:"principal"`
	// Strategy is how the context was chosen, Because why so.
	Strategy string `json:"strategy"`
	Because  string `json:"because,omitempty"`
	// Intent is what the question wants, as far as its words tell.
	Intent Intent `json:"intent,omitzero"`
	// Database is where the answer lies; empty if nothing fits, and Nothing says why.
	Database string   `json:"database"`
	Nothing  string   `json:"nothing,omitempty"`
	Objects  []Object `json:"objects"`
	Joins    []Join   `json:"joins"`
	// Text is the context as whoever writes SQL reads it, in Tokens tokens.
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
	// Refusal is set if the request was refused; then nothing else was decided.
	Refusal *Refusal `json:"refusal"`
	// Record names the record of this answer in the audit log. It tells nothing by itself.
	Record string `json:"record"`
}

// Object is a member of a context.
type Object struct {
	Kind  string  `json:"kind"`
	Ref   string  `json:"ref"`
	Score float64 `json:"score"`
	// Parts say what speaks for the object by itself, for its table and for its database.
	Parts  Parts  `json:"parts"`
	Reason string `json:"reason"`
	// Role is what the question needs a column for: projection, filter, join, group or order; empty if nothing tells.
	Role string `json:"role,omitempty"`
	// Members are the tables that a table stands for, itself among them, oldest first, if there are several.
	Members []string `json:"members,omitempty"`
}

// Parts are on scales of the ranker's own.
type Parts struct {
	Own      float64 `json:"own"`
	Table    float64 `json:"table,omitempty"`
	Database float64 `json:"database,omitempty"`
}

// Intent is what a question wants: single_table, multi_table, metric, temporal or exploratory.
type Intent struct {
	Kind    string `json:"kind"`
	Complex bool   `json:"complex"`
}

// Join is a step of a join path: From[i] = To[i].
type Join struct {
	From        []string `json:"from"`
	To          []string `json:"to"`
	Cardinality string   `json:"cardinality,omitempty"`
}

// Refusal is a no, in words that tell the asker nothing they may not know.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Answer is a context with the statement that answers the question. SQL is nil if nobody was sure enough to write any,
// and Reason says why; GuardedSQL is nil if there is nothing to run.
type Answer struct {
	Context
	SQL        *string       `json:"sql"`
	GuardedSQL *string       `json:"guarded_sql"`
	Reason     string        `json:"reason,omitempty"`
	Rows       *execute.Rows `json:"rows,omitempty"`
}

// Verdict is what the guard says of a statement.
type Verdict struct {
	Decision acl.Effect `json:"decision"`
	SQL      string     `json:"sql,omitempty"`
	Code     string     `json:"code,omitempty"`
	Message  string     `json:"message,omitempty"`
	Hint     string     `json:"hint,omitempty"`
	Reads    []Read     `json:"reads,omitempty"`
	// Output says of each result column what it is made of, Filters which columns choose the rows.
	Output  []Output `json:"output,omitempty"`
	Filters []string `json:"filters,omitempty"`
	Record  string   `json:"record,omitempty"`
}

// Output is a result column: identity, transformation or aggregation of the columns that it is made from, if of any.
type Output struct {
	Name      string   `json:"name"`
	From      []string `json:"from,omitempty"`
	Transform string   `json:"transform"`
}

// Read is a table that a statement reads, with the columns that it names. Which rules of the policy were in force is
// for the audit.
type Read struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
}

func reads(st rewrite.Statement) []Read {
	var out []Read
	for _, r := range st.Reads() {
		read := Read{Table: r.Table.String(), Columns: []string{}}
		for _, c := range r.Columns {
			read.Columns = append(read.Columns, c.String())
		}
		out = append(out, read)
	}
	return out
}

func outputs(st rewrite.Statement) []Output {
	var out []Output
	for _, o := range st.Output() {
		out = append(out, Output{o.Name, texts(o.From), string(o.Transform)})
	}
	return out
}

func texts(refs []catalog.Ref) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.String())
	}
	return out
}

func publish(out Context, c retrieval.Context) Context {
	out.Strategy, out.Because, out.Database, out.Nothing = string(c.Strategy), c.Because, c.Database, c.Nothing
	out.Text, out.Tokens = c.Text, c.Tokens
	out.Intent = Intent{string(c.Intent.Kind), c.Intent.Complex}
	for _, it := range c.Items {
		o := Object{Kind: it.Ref.Kind.String(), Ref: it.Ref.String(), Score: it.Score, Parts: Parts(it.Parts), Reason: it.Reason, Role: string(it.Role)}
		for _, m := range it.Members {
			o.Members = append(o.Members, m.String())
		}
		out.Objects = append(out.Objects, o)
	}
	for _, j := range c.Joins {
		o := Join{Cardinality: string(j.Cardinality)}
		for i := range j.From {
			o.From, o.To = append(o.From, j.From[i].String()), append(o.To, j.To[i].String())
		}
		out.Joins = append(out.Joins, o)
	}
	return out
}
