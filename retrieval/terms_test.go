package retrieval

import (
	"slices"
	"testing"
)

func TestTermsReadIdentifiersAsPeopleDo(t *testing.T) {
	for text, want := range map[string][]string{
		"cust_id":             {"custom", "id"},
		"custID2":             {"custom", "id", "2"},
		"HTTPServerName":      {"http", "server", "name"},
		"IDs":                 {"id"},
		"FRPM Count (K-12)":   {"frpm", "count", "k", "12"},
		"amt_net_rev_lcl":     {"amount", "net", "revenu", "local"},
		"Free Meal-Count":     {"free", "meal", "count"},
		"地区销售额":               {"地区", "区销", "销售", "售额"},
		"kunden_größe":        {"kunden", "größe"},
		"":                    nil,
		"  \x00 --- '' \n\t ": nil,
	} {
		if got := Terms(text); !slices.Equal(got, want) {
			t.Errorf("Terms(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestQuestionTermsKeepWhatSaysWhereTheAnswerLies(t *testing.T) {
	terms, compounds := QuestionTerms("What is the eye colour of the blue-eyed heroes, and the colour of hair?")
	texts := func(ts []Term) (out []string) {
		for _, t := range ts {
			out = append(out, t.Text)
		}
		return out
	}
	if got, want := texts(terms), []string{"eye", "colour", "blue", "hero", "hair"}; !slices.Equal(got, want) {
		t.Errorf("terms %q, want %q", got, want)
	}
	if got := texts(compounds); !slices.Contains(got, "eyecolour") {
		t.Errorf("compounds %q lack eyecolour", got)
	}
}
