package retrieval_test

import (
	"testing"

	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/retrieval"
)

func TestWhatAQuestionNeedsAColumnFor(t *testing.T) {
	staff := func() *draft {
		d := new(draft).database("hr", catalog.SQLite).
			table("employees", "who works here", "id*", "name", "salary: what is paid a month", "hire_date", "department_id", "years_of_service", "lowest_grade").
			table("departments", "", "id*", "title", "city").
			key("employees.department_id -> departments.id").pad(2)
		d.objects[len(d.objects)-1].Column.Samples = nil
		return d
	}
	for _, tt := range []struct {
		question, column string
		want             retrieval.Role
	}{
		{"What is the salary of the employees?", "employees.salary", retrieval.RoleProjection},
		{"name of the employees", "employees.name", retrieval.RoleProjection},
		{"Which employees have a salary over 5000?", "employees.salary", retrieval.RoleFilter},
		{"employees whose salary is greater than 5000", "employees.salary", retrieval.RoleFilter},
		{"employees with a hire date before 2020-01-01", "employees.hire_date", retrieval.RoleFilter},
		{"employees by the name of 'Miller'", "employees.name", retrieval.RoleFilter},
		{"employees by the name of “miller”, and their salary", "employees.salary", retrieval.RoleProjection},
		{"the employees' salary and hire date", "employees.hire_date", retrieval.RoleProjection},
		{"departments in the city of Berlin", "departments.city", retrieval.RoleFilter},
		{"departments in the Berlin city", "departments.city", retrieval.RoleFilter},
		{"employees mit salary über 5000", "employees.salary", retrieval.RoleFilter},
		{"Who has the highest salary among employees?", "employees.salary", retrieval.RoleOrder},
		{"employees with the most years of service", "employees.years_of_service", retrieval.RoleOrder},
		{"employees sorted by salary", "employees.salary", retrieval.RoleOrder},
		{"What is the lowest grade of employees?", "employees.lowest_grade", retrieval.RoleProjection},
		{"How many departments are there in each city?", "departments.city", retrieval.RoleGroup},
		{"average salary of employees by city of the departments", "departments.city", retrieval.RoleGroup},
		{"average salary per city", "departments.city", retrieval.RoleGroup},
		{"number of departments visited by city", "departments.city", retrieval.RoleProjection},
		{"list the name and city of each of the departments", "departments.city", retrieval.RoleProjection},
		{"salary of employees and city of departments", "employees.department_id", retrieval.RoleJoin},
		{"salary of employees and city of departments", "departments.id", retrieval.RoleJoin},
		{"show the title of departments by city", "departments.city", retrieval.RoleProjection},
		{"salary of employees", "employees.hire_date", ""},
		{"Which employees are paid?", "employees.salary", ""},
	} {
		if got := item(t, staff().link(t, tt.question, 5000), "hr."+tt.column).Role; got != tt.want {
			t.Errorf("%q needs %s for %q, want %q", tt.question, tt.column, got, tt.want)
		}
	}
	said := staff()
	for i, o := range said.objects {
		if o.Ref.Column == "title" {
			said.objects[i].Column.Samples = []string{"engineering", "sales"}
		}
	}
	if got := item(t, said.link(t, "salary of employees in engineering", 5000), "hr.departments.title").Role; got != retrieval.RoleFilter {
		t.Errorf("a column whose value was said is needed for %q", got)
	}
}

func TestAMetricTellsWhatItNeedsColumnsFor(t *testing.T) {
	d := shop().pad(5)
	c := d.add(turnover(d)).link(t, "sales volume", 5000)
	for column, want := range map[string]retrieval.Role{
		"shop.order_lines.net_amt": retrieval.RoleProjection,
		"shop.orders.ordered_on":   retrieval.RoleFilter,
		"shop.orders.status":       retrieval.RoleFilter,
	} {
		if got := item(t, c, column).Role; got != want {
			t.Errorf("%s is needed for %q, want %q", column, got, want)
		}
	}
	for _, it := range c.Items {
		if it.Ref.Kind != catalog.KindColumn && it.Role != "" {
			t.Errorf("%s has the role %q", it.Ref, it.Role)
		}
	}
}
