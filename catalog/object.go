package catalog

import "time"

// Object is one entry of a catalog. Exactly one of the five pointers is set, the one that Ref.Kind names.
// Objects of a Snapshot are shared and must not be changed.
type Object struct {
	Ref Ref `json:"ref"`
	// ID is dense within one Snapshot and means nothing outside it.
	ID uint32 `json:"-"`

	Description string   `json:"description,omitempty"`
	Synonyms    []string `json:"synonyms,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	// Cleared lists tags that do not hold of a column although it is derived from one that has them.
	Cleared []string `json:"cleared,omitempty"`
	Owner   string   `json:"owner,omitempty"`
	Domain  string   `json:"domain,omitempty"` // the part of the business that it belongs to

	Table        *Table        `json:"table,omitempty"`
	Column       *Column       `json:"column,omitempty"`
	Metric       *Metric       `json:"metric,omitempty"`
	Relationship *Relationship `json:"relationship,omitempty"`
	Query        *Query        `json:"query,omitempty"`
}

// Table describes a table or a SQL view.
type Table struct {
	// SQLView is the view's defining statement; it is empty for a base table.
	SQLView         string `json:"sql_view,omitempty"`
	UpdateFrequency string `json:"update_frequency,omitempty"`
	// Rows is the number of rows, exact or the engine's estimate; nil if unknown. It comes from rows.
	Rows        *int64       `json:"rows,omitempty"`
	PrimaryKey  []string     `json:"primary_key,omitempty"`
	UniqueKeys  [][]string   `json:"unique_keys,omitempty"`
	ForeignKeys []ForeignKey `json:"foreign_keys,omitempty"`
	// Partitions lists identically shaped tables that this one stands for, such as dated copies.
	Partitions []Ref `json:"partitions,omitempty"`
}

// ForeignKey is a declared key: Columns of the table that holds it point at ToColumns of To, pairwise.
type ForeignKey struct {
	Columns   []string `json:"columns"`
	To        Ref      `json:"to"`
	ToColumns []string `json:"to_columns"`
}

// Column describes a column. Position counts from 0 in the table's own order.
type Column struct {
	Type       string `json:"type,omitempty"`
	Position   int    `json:"position"`
	NotNull    bool   `json:"not_null,omitempty"`
	PrimaryKey bool   `json:"primary_key,omitempty"`
	// ForeignKeys are the columns that this one points at.
	ForeignKeys []Ref `json:"foreign_keys,omitempty"`

	// DerivedFrom are the columns that the values are made of, for a column of a SQL view.
	DerivedFrom []Ref `json:"derived_from,omitempty"`

	// The rest comes from rows, and is withheld from whoever may not see all of them (see package acl).

	Samples []string `json:"samples,omitempty"`
	// Dictionary lists the values of a text column that has few of them, none longer than a line, in order of text. Where
	// the table is too large to be read whole it may lack some. It is for finding columns by what is in them; what shows
	// values shows Samples.
	Dictionary []string `json:"dictionary,omitempty"`
	NullShare  *float64 `json:"null_share,omitempty"` // 0 to 1
	Distinct   *int64   `json:"distinct,omitempty"`
}

// Metric is a number with a business definition.
type Metric struct {
	// Formula is an aggregate expression over columns of Sources, in the SQL of their database; columns are written
	// table.column where two sources share a name.
	Formula string `json:"formula"`
	Sources []Ref  `json:"sources"`
	Columns []Ref  `json:"columns,omitempty"`
	// Dimensions are columns by which it makes sense to group; any column that joins without multiplying rows does too.
	Dimensions []Ref `json:"dimensions,omitempty"`
	// Time is the column that a time range applies to; zero if the metric has none.
	Time        Ref      `json:"time,omitzero"`
	Unit        string   `json:"unit,omitempty"`
	Aggregation string   `json:"aggregation,omitempty"`
	Filters     []string `json:"filters,omitempty"` // predicates that always apply
	// Mentions are the further tables and columns that Formula and Filters could mean, in a subquery; Build finds them.
	Mentions []Ref `json:"mentions,omitempty"`
}

// Relationship says how two tables join: From[i] = To[i] for every i.
type Relationship struct {
	From []Ref `json:"from"`
	To   []Ref `json:"to"`
	// Type is where the relationship is known from.
	Type        RelationshipType `json:"type"`
	Cardinality Cardinality      `json:"cardinality,omitempty"`
	// JoinSQL is a join condition that says more than the pairs of columns; it may be empty.
	JoinSQL string `json:"join_sql,omitempty"`
	// Mentions are the tables and columns beyond the two ends that JoinSQL could mean; Build finds them.
	Mentions  []Ref `json:"mentions,omitempty"`
	Validated bool  `json:"validated,omitempty"`
	Usage     int64 `json:"usage,omitempty"` // times seen in past queries
}

// RelationshipType is the evidence a relationship rests on.
type RelationshipType string

// The kinds of evidence, strongest first.
const (
	ForeignKeyRelationship RelationshipType = "foreign_key"
	DocumentedRelationship RelationshipType = "documented"
	ObservedRelationship   RelationshipType = "observed"
)

// Cardinality counts rows of From for one of To: many_to_one means that each row of From has at most one in To.
type Cardinality string

// The cardinalities; the empty one is unknown.
const (
	ManyToOne  Cardinality = "many_to_one"
	OneToMany  Cardinality = "one_to_many"
	OneToOne   Cardinality = "one_to_one"
	ManyToMany Cardinality = "many_to_many"
)

// Query is a question asked before and how it was answered. All of its text comes from people who saw rows.
type Query struct {
	Question     string    `json:"question"`
	SQL          string    `json:"sql,omitempty"`
	Tables       []Ref     `json:"tables"`
	Columns      []Ref     `json:"columns,omitempty"`
	JoinPattern  string    `json:"join_pattern,omitempty"`
	Aggregations []string  `json:"aggregations,omitempty"`
	Filters      []Ref     `json:"filters,omitempty"` // columns that were filtered on
	Count        int64     `json:"count,omitempty"`   // executions
	LastRun      time.Time `json:"last_run,omitzero"`
}

// Names returns every table and column that the object names, itself included if it is one. An object is visible to
// a principal only if all of them are.
func (o *Object) Names() []Ref {
	switch {
	case o.Metric != nil:
		refs := append([]Ref(nil), o.Metric.Sources...)
		refs = append(refs, o.Metric.Columns...)
		refs = append(refs, o.Metric.Dimensions...)
		if !o.Metric.Time.IsZero() {
			refs = append(refs, o.Metric.Time)
		}
		return append(refs, o.Metric.Mentions...)
	case o.Relationship != nil:
		refs := append([]Ref(nil), o.Relationship.From...)
		refs = append(refs, o.Relationship.To...)
		return append(refs, o.Relationship.Mentions...)
	case o.Query != nil:
		refs := append([]Ref(nil), o.Query.Tables...)
		refs = append(refs, o.Query.Columns...)
		return append(refs, o.Query.Filters...)
	}
	return []Ref{o.Ref}
}
