package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/schemagate/schemagate/acl"
	"github.com/schemagate/schemagate/catalog"
	"github.com/schemagate/schemagate/catalog/ingest"
	"github.com/schemagate/schemagate/lineage"
	"github.com/schemagate/schemagate/retrieval"
	"github.com/schemagate/schemagate/retrieval/local"
	"github.com/schemagate/schemagate/templates"
)

var roles = [...]retrieval.Role{retrieval.RoleProjection, retrieval.RoleFilter, retrieval.RoleJoin, retrieval.RoleGroup, retrieval.RoleOrder}

// measureRoles compares the roles of the columns in contexts with the clauses in which the answers name them, on every
// so manyth question of each set. Columns that the answer does not name are left out.
func measureRoles(bench string, every int) error {
	fmt.Println("| set | role | given | right | answers have | found |\n|---|---|---|---|---|---|")
	for _, set := range sets {
		content, err := ingest.Bench{Dir: bench, Set: set}.Read(context.Background(), nil)
		if err != nil {
			return err
		}
		s, err := catalog.Build(content.Databases, content.Objects)
		if err != nil {
			return err
		}
		linker, err := retrieval.NewLinker(&retrieval.Ranker{Index: local.New(s)}, lineage.New(s), templates.NewCounter(), retrieval.DefaultConfig)
		if err != nil {
			return err
		}
		questions, err := ingest.Questions(bench, set)
		if err != nil {
			return err
		}
		given, right, have, found := map[retrieval.Role]int{}, map[retrieval.Role]int{}, map[retrieval.Role]int{}, map[retrieval.Role]int{}
		silent, all := 0, 0
		for i := 0; i < len(questions); i += every {
			q := questions[i]
			c, err := linker.Link(context.Background(), q.Question, acl.Everything(s))
			if err != nil {
				return err
			}
			st := read(q.SQL)
			for _, it := range c.Items {
				if it.Ref.Kind != catalog.KindColumn || !strings.EqualFold(it.Ref.Database, q.DB) || !names(q.GoldColumns, it.Ref) {
					continue
				}
				all++
				known := st.roles[strings.ToLower(it.Ref.Column)]
				if it.Role == "" {
					silent++
				}
				given[it.Role]++
				if known[it.Role] {
					right[it.Role]++
				}
				for r := range known {
					have[r]++
					if r == it.Role {
						found[r]++
					}
				}
			}
		}
		for _, r := range roles {
			fmt.Printf("| %s | %s | %d | %.1f | %d | %.1f |\n", set, r, given[r], 100*float64(right[r])/float64(given[r]), have[r], 100*float64(found[r])/float64(have[r]))
		}
		fmt.Printf("| %s | none | %d of %d | | | |\n", set, silent, all)
	}
	return nil
}

func names(columns []string, ref catalog.Ref) bool {
	for _, c := range columns {
		if strings.EqualFold(c, ref.Table+"."+ref.Column) {
			return true
		}
	}
	return false
}
