package audit

import (
	"cmp"
	"strings"
)

// event is a Datastore Activity, class 6005, of OCSF 1.4. What the class has no attribute for is in unmapped, under the
// names that it has in the log.
type event struct {
	ActivityID   int    `json:"activity_id"`
	ActivityName string `json:"activity_name"`
	CategoryUID  int    `json:"category_uid"`
	CategoryName string `json:"category_name"`
	ClassUID     int    `json:"class_uid"`
	ClassName    string `json:"class_name"`
	TypeUID      int    `json:"type_uid"`
	TypeName     string `json:"type_name"`
	SeverityID   int    `json:"severity_id"`
	Severity     string `json:"severity"`
	StatusID     int    `json:"status_id"`
	Status       string `json:"status"`
	StatusCode   string `json:"status_code,omitempty"`
	StatusDetail string `json:"status_detail,omitempty"`
	Time         int64  `json:"time"`               // ms since 1970
	Duration     int64  `json:"duration,omitempty"` // ms
	Message      string `json:"message,omitempty"`

	Metadata    ocsfMetadata `json:"metadata"`
	Actor       ocsfActor    `json:"actor"`
	SrcEndpoint ocsfEndpoint `json:"src_endpoint"`
	Database    ocsfDatabase `json:"database"`
	Table       *ocsfEntity  `json:"table,omitempty"`
	TypeID      int          `json:"type_id"` // of the datastore
	QueryInfo   *ocsfQuery   `json:"query_info,omitempty"`
	Unmapped    unmapped     `json:"unmapped"`
}

type ocsfMetadata struct {
	Version   string      `json:"version"`
	Product   ocsfProduct `json:"product"`
	UID       string      `json:"uid"`
	Sequence  uint64      `json:"sequence"`
	TenantUID string      `json:"tenant_uid,omitempty"`
	LogName   string      `json:"log_name"`
}

type ocsfProduct struct {
	Name       string `json:"name"`
	VendorName string `json:"vendor_name"`
}

type ocsfEntity struct {
	Name string `json:"name"`
}

type ocsfActor struct {
	AppName        string              `json:"app_name,omitempty"`
	User           ocsfUser            `json:"user"`
	Authorizations []ocsfAuthorization `json:"authorizations,omitempty"`
}

type ocsfUser struct {
	Name   string       `json:"name"`
	TypeID int          `json:"type_id"`
	Groups []ocsfEntity `json:"groups,omitempty"`
}

type ocsfAuthorization struct {
	Decision string     `json:"decision"`
	Policy   ocsfPolicy `json:"policy"`
}

type ocsfPolicy struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type ocsfEndpoint struct {
	SvcName string `json:"svc_name"`
}

type ocsfDatabase struct {
	Name   string `json:"name"`
	UID    string `json:"uid,omitempty"`
	TypeID int    `json:"type_id"`
}

type ocsfQuery struct {
	UID         string `json:"uid"`
	QueryString string `json:"query_string"`
}

type unmapped struct {
	Action     string   `json:"action,omitempty"`
	Outcome    Outcome  `json:"outcome"`
	OnBehalfOf string   `json:"on_behalf_of,omitempty"`
	SQL        string   `json:"sql,omitempty"` // the draft, where the query is what the guard made of it
	Snapshot   string   `json:"snapshot,omitempty"`
	Read       []string `json:"read,omitempty"`
	Filters    []string `json:"filters,omitempty"`
	Output     []Output `json:"output,omitempty"`
	Returned   []string `json:"returned,omitempty"`
	Withheld   []string `json:"withheld,omitempty"`
	Rules      []string `json:"rules,omitempty"`
	Strategy   string   `json:"strategy,omitempty"`
	Degraded   []string `json:"degraded,omitempty"`

	Retention *Retention `json:"retention,omitempty"`
	Prev      string     `json:"prev"`
	Hash      string     `json:"hash"`
}

// coded is one of the schema's numbers with its caption.
type coded struct {
	id      int
	caption string
}

var (
	activityQuery  = coded{4, "Query"}  // a statement, or a question that became one
	activityList   = coded{8, "List"}   // a context: what there is to query
	activityDelete = coded{7, "Delete"} // a retention
	activityOther  = coded{99, "Other"}

	statusSuccess = coded{1, "Success"}
	statusFailure = coded{2, "Failure"}

	severityInformational = coded{1, "Informational"}
	severityLow           = coded{2, "Low"}
	severityMedium        = coded{3, "Medium"}
)

func newEvent(r Record) event {
	const category, class = 6, 6005
	activity := activityOf(r)
	status, severity, decision := verdict(r)
	e := event{
		ActivityID: activity.id, ActivityName: activity.caption,
		CategoryUID: category, CategoryName: "Application Activity",
		ClassUID: class, ClassName: "Datastore Activity",
		TypeUID: class*100 + activity.id, TypeName: "Datastore Activity: " + activity.caption,
		SeverityID: severity.id, Severity: severity.caption,
		StatusID: status.id, Status: status.caption, StatusCode: r.Code, StatusDetail: r.Detail,
		Time: r.Time.UnixMilli(), Duration: r.Latency.Milliseconds(), Message: r.Question,
		Metadata: ocsfMetadata{
			Version: "1.4.0", Product: ocsfProduct{"Schemagate", "Schemagate"},
			UID: r.ID, Sequence: r.Seq, TenantUID: r.Tenant, LogName: "audit",
		},
		Actor: ocsfActor{
			User: ocsfUser{Name: r.Principal},
		},
		SrcEndpoint: ocsfEndpoint{r.Face},
		Unmapped: unmapped{
			r.Action, r.Outcome, r.OnBehalfOf, r.SQL, r.Snapshot, r.Read, r.Filters, r.Output,
			r.Returned, r.Withheld, r.Rules, r.Strategy, r.Degraded, r.Retention, r.Prev, r.Hash,
		},
	}
	if activity == activityOther {
		e.ActivityName = r.Action
	}
	if decision != "" {
		e.Actor.Authorizations = []ocsfAuthorization{{decision, ocsfPolicy{"schemagate", r.Policy}}}
	}
	if r.OnBehalfOf != "" { // the principal is then the application
		e.Actor.AppName, e.Actor.User.Name = r.Principal, r.OnBehalfOf
	}
	if e.Actor.User.Name == "" {
		e.Actor.User.Name = "unknown"
	}
	if e.SrcEndpoint.SvcName == "" {
		e.SrcEndpoint.SvcName = "unknown"
	}
	for _, role := range r.Roles {
		e.Actor.User.Groups = append(e.Actor.User.Groups, ocsfEntity{role})
	}
	e.datastore(r)
	if sql := cmp.Or(r.GuardedSQL, r.SQL); sql != "" {
		e.QueryInfo = &ocsfQuery{UID: r.ID, QueryString: sql}
	}
	return e
}

func activityOf(r Record) coded {
	switch {
	case r.Action == "context":
		return activityList
	case r.Action == "ask", r.Action == "guard":
		return activityQuery
	case r.Action == "retain":
		return activityDelete
	}
	return activityOther
}

// verdict tells how a record ended: an abstention is a success without SQL, a refusal is worth a look, and a failure ended
// before anything was decided.
func verdict(r Record) (status, severity coded, decision string) {
	switch r.Outcome {
	case Refused:
		return statusFailure, severityLow, "denied"
	case Failed:
		return statusFailure, severityMedium, ""
	}
	return statusSuccess, severityInformational, "allowed"
}

// datastore names the database and the table if the record is about one; what is about none was asked of the catalog.
func (e *event) datastore(r Record) {
	refs := r.Read
	if len(refs) == 0 {
		refs = r.Returned
	}
	database := ""
	for _, ref := range refs {
		if first, _, dotted := strings.Cut(ref, "."); dotted && !strings.Contains(first, ":") {
			database = first
			break
		}
	}
	e.Database, e.TypeID = ocsfDatabase{Name: database, TypeID: 1}, 1
	if database == "" {
		e.Database, e.TypeID = ocsfDatabase{Name: "catalog", UID: r.Snapshot, TypeID: 99}, 99
	}
	if len(r.Read) > 0 {
		e.Table, e.TypeID = &ocsfEntity{r.Read[0]}, 3
	}
}
