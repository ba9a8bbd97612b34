package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Field is something about an object that a steward may say, whatever its source says.
type Field string

// The fields that can be edited.
const (
	FieldDescription Field = "description"
	FieldOwner       Field = "owner"
	FieldDomain      Field = "domain"
	FieldTags        Field = "tags"
	FieldSynonyms    Field = "synonyms"
	FieldCleared     Field = "cleared" // tags that a column does not inherit
)

// Edit replaces one field of one object. Edits are kept apart from what sources say and laid over it, so that they
// survive a new ingest; the last edit of a field wins.
type Edit struct {
	Ref    Ref       `json:"ref"`
	Field  Field     `json:"field"`
	Values []string  `json:"values"` // one value for a description, owner or domain
	Author string    `json:"author"`
	At     time.Time `json:"at"`
}

// Validate reports what is wrong with the edit itself; whether its object exists is for Apply to tell.
func (e Edit) Validate() error {
	switch e.Field {
	case FieldDescription, FieldOwner, FieldDomain:
		if len(e.Values) > 1 {
			return fmt.Errorf("catalog: %s takes one value, not %d", e.Field, len(e.Values))
		}
	case FieldTags, FieldSynonyms, FieldCleared:
	default:
		return fmt.Errorf("catalog: %q cannot be edited; description, owner, domain, tags, cleared and synonyms can", e.Field)
	}
	if e.Ref.IsZero() {
		return fmt.Errorf("catalog: an edit must name an object")
	}
	return nil
}

// Apply builds the snapshot that has the edits laid over s, and lists the edits whose object s does not hold: they
// are kept by whoever stores them and apply again if the object comes back.
func Apply(s *Snapshot, edits []Edit) (_ *Snapshot, dangling []Edit, err error) {
	objects := slices.Clone(s.objects)
	changed := false
	for _, e := range edits {
		if err := e.Validate(); err != nil {
			return nil, nil, err
		}
		id, ok := s.ID(e.Ref)
		if !ok {
			dangling = append(dangling, e)
			continue
		}
		changed = true
		o := &objects[id]
		switch e.Field {
		case FieldDescription:
			o.Description = strings.Join(e.Values, "")
		case FieldOwner:
			o.Owner = strings.Join(e.Values, "")
		case FieldDomain:
			o.Domain = strings.Join(e.Values, "")
		case FieldTags:
			o.Tags = slices.Clone(e.Values)
		case FieldCleared:
			o.Cleared = slices.Clone(e.Values)
		case FieldSynonyms:
			o.Synonyms = slices.Clone(e.Values)
		}
	}
	if !changed {
		return s, dangling, nil
	}
	out := *s
	out.objects = objects
	out.version, err = out.digest()
	return &out, dangling, err
}
