package postgres

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// shortText is a length in bytes below which no text can nest deeply enough to harm the parser.
const shortText = 2 * maxChain

// checkChains refuses a text whose tree could overflow the parser's stack. The grammar bounds what nests to the right
// and in parentheses, but builds chains of operators, casts, joins and set operations as deep as they are long, and
// the parser then walks them by recursion. The scanner does not recurse.
func checkChains(sql string) error {
	tokens, err := scanTokens(sql)
	if err != nil {
		return unparsable(err.Error())
	}
	stack := []group{{}}
	for _, t := range tokens.GetTokens() {
		top := &stack[len(stack)-1]
		switch t.Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91, pg.Token_CASE: // ( [
			stack = append(stack, group{})
			continue
		case pg.Token_ASCII_41, pg.Token_ASCII_93, pg.Token_END_P: // ) ]
			if len(stack) == 1 {
				continue // unbalanced: the parser will say so
			}
			depth := top.depth() + 1
			stack = stack[:len(stack)-1]
			top = &stack[len(stack)-1]
			top.inner = max(top.inner, depth)
			// A subscript lengthens the chain that it stands in.
			if t.Token == pg.Token_ASCII_93 {
				top.links++
			}
		case pg.Token_ASCII_44, pg.Token_AND, pg.Token_OR, pg.Token_ASCII_59: // , ;
			top.end()
		case pg.Token_JOIN, pg.Token_UNION, pg.Token_INTERSECT, pg.Token_EXCEPT:
			top.end()
			top.spine++
		case pg.Token_Op, pg.Token_TYPECAST, pg.Token_COLLATE, pg.Token_AT, pg.Token_IS, pg.Token_NOT, pg.Token_ISNULL, pg.Token_NOTNULL,
			pg.Token_WHEN, pg.Token_LIKE, pg.Token_ILIKE, pg.Token_SIMILAR, pg.Token_BETWEEN, pg.Token_IN_P, pg.Token_OPERATOR,
			pg.Token_LESS_EQUALS, pg.Token_GREATER_EQUALS, pg.Token_NOT_EQUALS,
			pg.Token_ASCII_42, pg.Token_ASCII_43, pg.Token_ASCII_45, pg.Token_ASCII_47, pg.Token_ASCII_37, // * + - / %
			pg.Token_ASCII_60, pg.Token_ASCII_61, pg.Token_ASCII_62, pg.Token_ASCII_94: // < = > ^
			top.links++
		}
		if len(stack) > maxChain || top.depth() > maxChain {
			return tooDeep(fmt.Sprintf("about %d operators, joins or levels on top of each other", maxChain))
		}
	}
	return nil
}

// group is what stands between two parentheses, or in a CASE: segments, each a chain of links around an inner group, on a spine of
// joins and set operations.
type group struct {
	links, inner   int // of the segment so far
	longest, spine int
}

func (g *group) end() {
	g.longest = max(g.longest, g.links+g.inner)
	g.links, g.inner = 0, 0
}

func (g *group) depth() int { return max(g.longest, g.links+g.inner) + g.spine }
