// Package acl decides what one principal may see. A Policy is what people wrote; a View is what it means for one
// principal on one catalog. The zero View sees nothing and the zero Effect denies.
package acl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Action is something that a grant can allow.
type Action string

// The actions. View shows an object's metadata; Query lets statements select from it.
const (
	ActionView        Action = "view"
	ActionQuery       Action = "query"
	ActionEdit        Action = "edit"
	ActionApprove     Action = "approve"
	ActionAdminister  Action = "administer"
	ActionAudit       Action = "audit"
	ActionImpersonate Action = "impersonate"
)

// Actions lists all actions.
var Actions = [...]Action{ActionView, ActionQuery, ActionEdit, ActionApprove, ActionAdminister, ActionAudit, ActionImpersonate}

// Effect is the outcome of a decision.
type Effect uint8

// The effects. Deny is the zero value, so that a decision nobody made is a no.
const (
	Deny Effect = iota
	Allow
)

// String returns "allow" or "deny".
func (e Effect) String() string {
	if e == Allow {
		return "allow"
	}
	return "deny"
}

// MarshalText encodes the effect as its name.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Principal is who asks. Attributes hold strings, int64s, float64s, bools and slices of strings or int64s.
type Principal struct {
	Name       string
	Roles      []string // as granted; what they inherit is the policy's business
	Attributes map[string]any
	// Tenant is the part of the deployment that the principal belongs to; empty where there is only one.
	Tenant string
	// ActsFor is set for a service account: it may act for people who have one of these roles, or for all if one is *.
	ActsFor []string
}

// Attribute returns an attribute by name. The principal's own name is the attribute "name" unless the policy sets one.
func (p Principal) Attribute(name string) (any, bool) {
	v, ok := p.Attributes[name]
	if !ok && name == "name" {
		return p.Name, p.Name != ""
	}
	return v, ok
}

// Refusal is a no, as opposed to a fault. Error and Public are for whoever asked and name nothing that they did not
// say themselves or may see; Detail and Rule are for the audit.
type Refusal struct {
	Code   string // kebab-case and stable
	Public string // one sentence
	Hint   string // what to do next
	Detail string
	Rule   string
}

// Error returns the public sentence.
func (r *Refusal) Error() string { return r.Public }

// The codes of refusals.
const (
	CodeNotAvailable       = "not-available"       // denied or absent: the asker cannot tell which
	CodeUnknownPrincipal   = "unknown-principal"   // nobody of that name
	CodeUnparsable         = "unparsable"          // not a statement of the dialect
	CodeMultipleStatements = "multiple-statements" // more than one statement
	CodeNotReadOnly        = "not-read-only"       // does more than read
	CodeNotSupported       = "not-supported"       // a construct that the guard does not vouch for
	CodeAmbiguous          = "ambiguous-name"      // a name that several visible objects bear
	CodeMaskUnsupported    = "mask-unsupported"    // the engine has no function for the mask
	CodeMissingAttribute   = "missing-attribute"   // a row filter needs an attribute that the principal lacks
	CodeTooLarge           = "too-large"           // over a limit on size or depth
	CodeDialectUnsupported = "dialect-unsupported" // no guard for the database's dialect
	CodeAccessChanged      = "access-changed"      // what the principal may see changed while they asked
	CodeMayNotAct          = "may-not-act"         // not for that person
)

// NotAvailable is the refusal for a name that is denied or absent. said is the name as the asker wrote it; detail
// tells the two cases apart, for the audit only.
func NotAvailable(said, detail string) *Refusal {
	return &Refusal{
		Code:   CodeNotAvailable,
		Public: fmt.Sprintf("%s is not available to you", said),
		Hint:   "check the name, or ask the data's owner for access",
		Detail: detail,
	}
}

// RowFilter limits the rows of one table for one role set: a row is seen if one of Permissive and all of Restrictive
// hold. A table with a RowFilter that has no permissive predicate shows no rows.
type RowFilter struct {
	Permissive, Restrictive []Predicate
}

// Predicate is a condition in the SQL of its table's database; {{ principal.NAME }} stands for an attribute.
type Predicate struct {
	Using string
	Rule  string // its place in the policy
	// Of is whose attributes fill its places; nil means the view's principal.
	Of *Principal
}

// MaskKind is how a masked value reads.
type MaskKind string

// The masks, in order of precedence: where several apply to a column, the first wins.
const (
	MaskNull       MaskKind = "null"
	MaskHash       MaskKind = "hash"
	MaskPartial    MaskKind = "partial"
	MaskConstant   MaskKind = "constant"
	MaskExpression MaskKind = "expression"
)

var maskOrder = [...]MaskKind{MaskNull, MaskHash, MaskPartial, MaskConstant, MaskExpression}

// Everything reports whether the filter plainly lets every row through, in one of the few ways of saying so: TRUE, 1 or
// 1 = 1. A table with such a filter reads as one that is not protected.
func (f RowFilter) Everything() bool {
	return len(f.Restrictive) == 0 && slices.ContainsFunc(f.Permissive, func(p Predicate) bool {
		switch strings.ToLower(strings.Join(strings.Fields(p.Using), "")) {
		case "true", "1", "1=1":
			return true
		}
		return false
	})
}

// Mask replaces a column's values. Constant is a string, int64, float64 or bool; Expression is SQL over the table's
// raw columns.
type Mask struct {
	Kind       MaskKind
	Constant   any
	Expression string
	Rule       string
	Of         *Principal // as of a Predicate
}

// Strongest returns the mask that wins among those that apply to one column. masks must not be empty.
func Strongest(masks []Mask) Mask {
	return slices.MinFunc(masks, func(a, b Mask) int {
		return cmp.Compare(slices.Index(maskOrder[:], a.Kind), slices.Index(maskOrder[:], b.Kind))
	})
}

func sortedKeys[M ~map[string]V, V any](m M) []string { return slices.Sorted(maps.Keys(m)) }
