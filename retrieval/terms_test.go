package retrieval

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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
		"":                    nil,
		"  \x00 --- '' \n\t ": nil,
		"\xff\xfe":            nil,
		"t20240131":           {"t", "20240131"},
		"kunden_größe":        {"kunden", "grösse"},
		"STRASSE Straße":      {"strass", "strass"},
		"Überweisungsbetrag":  {"überweisungsbetrag"},
		"CAFÉ cafe\u0301":     {"café", "café"},
		"地区销售额":               {"地区", "区销", "销售", "售额"},
		"额":                   {"额"},
		"データベース":              {"デー", "ータ", "タベ", "ベー", "ース"},
		"고객 이름":               {"고객", "이름"},
		"order地区ID":           {"order", "id", "地区"},
		"客户_cust_id":          {"custom", "id", "客户"},
		"ｃｕｓｔ＿ｉｄ":             {"custom", "id"},
		"🙂 revenue 🚀":         {"revenu"},
		"ΔΕΛΤΑ δελτα":         {"δελτα", "δελτα"},
		"Số lượng":            {"số", "lượng"},
	} {
		if got := Terms(text); !slices.Equal(got, want) {
			t.Errorf("Terms(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShortFormsMeetTheirLongOnes(t *testing.T) {
	for short, long := range map[string]string{"qty": "quantities", "dept": "Departments", "txn": "transaction", "addr": "addresses", "emp": "employees"} {
		if a, b := Terms(short), Terms(long); !slices.Equal(a, b) {
			t.Errorf("%s reads %q, %s reads %q", short, a, long, b)
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
	if terms[3].Said != "heroes" {
		t.Errorf("the asker said %q", terms[3].Said)
	}
	if terms, compounds := QuestionTerms("what is it?"); len(terms)+len(compounds) > 0 {
		t.Errorf("nothing was asked, but terms are %v %v", terms, compounds)
	}
}

func TestTermsOfALongTextAreFoundFast(t *testing.T) {
	for what, text := range map[string]string{
		"words":            strings.Repeat("the revenue of customers by order_date ", 1<<20/39),
		"one word":         strings.Repeat("a", 1<<20),
		"one identifier":   strings.Repeat("aB", 1<<19),
		"ideographs":       strings.Repeat("地区", 1<<20/6),
		"combining marks":  "e" + strings.Repeat("\u0301", 1<<19),
		"emoji":            strings.Repeat("🙂", 1<<18),
		"no words":         strings.Repeat("\x00\n", 1<<19),
		"different words":  manyWords(1 << 20),
		"broken encodings": strings.Repeat("\xf0\x9f", 1<<19),
	} {
		before := time.Now()
		Terms(text)
		terms, compounds := QuestionTerms(text)
		if took := time.Since(before); took > 10*time.Second {
			t.Errorf("%s: a megabyte took %s", what, took)
		}
		if len(terms) > mostTerms || len(compounds) > mostTerms {
			t.Errorf("%s: %d terms, %d compounds", what, len(terms), len(compounds))
		}
	}
}

func manyWords(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "w%sx ", strings.Map(func(r rune) rune { return r + 'a' - '0' }, fmt.Sprint(i)))
	}
	return b.String()
}

func TestTermsOfAnyTextAreCleanAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for _, term := range Terms(text) {
			if term == "" || strings.ContainsAny(term, " _\n") {
				t.Fatalf("Terms(%q) holds %q", text, term)
			}
		}
		if a, b := Terms(text), Terms(strings.Clone(text)); !slices.Equal(a, b) {
			t.Fatalf("%q and %q", a, b)
		}
	})
}

func said(terms []Term) string {
	var out []string
	for _, t := range terms {
		out = append(out, t.Said)
	}
	return strings.Join(out, " ")
}

func TestGermanStopWordsCountInGermanSentencesOnly(t *testing.T) {
	for question, want := range map[string]string{
		"which die casts cracked in the war":         "die casts cracked war",
		"people who wear a hat":                      "people wear hat",
		"the man in an alle":                         "man alle",
		"Die Namen der Kunden von Berlin":            "namen kunden berlin",
		"Wie viele Kunden hat die Stadt":             "kunden stadt",
		"Welche Kunden haben mehr als zwei Verträge": "kunden zwei verträge",
		"zeige mir bitte alle Rechnungen für Köln":   "rechnungen köln",
		"die Umsätze":                                "die umsätze", // one mark is too little to tell
		"Which movie is called Der Untergang, and which singer is from Das Boot, say all the people of the town": "movie called der untergang singer das boot say people town",
	} {
		if terms, _ := QuestionTerms(question); said(terms) != want {
			t.Errorf("%q has the terms %s, want %s", question, said(terms), want)
		}
	}
}

func TestQuestionsInOtherLanguagesAreForeign(t *testing.T) {
	for question, want := range map[string]bool{
		"Wie viele Kunden gibt es?":               true,
		"Zeige die Namen der Kunden":              true,
		"各地区的销售额":                                 true,
		"revenue of 地区":                           true,
		"고객 이름":                                   true,
		"データ":                                     true,
		"How many customers are there?":           false,
		"die casts of the war":                    false,
		"Kunden":                                  false,
		"customers of Köln and Straße, für Elise": false,
		"": false,
	} {
		if got := foreign(question, phraseOf(question)); got != want {
			t.Errorf("%q is foreign: %v", question, got)
		}
	}
}

func TestAQuestionThatSaysSeveralThingsHasClauses(t *testing.T) {
	for _, tt := range []struct {
		name, question string
		want           []string
	}{
		{"one thing", "total revenue of customers by city", nil},
		{"one thing with a mark at its end", "What is the total revenue of customers?", nil},
		{"two sentences", "List customer names. Give order totals.", []string{"List customer names", "Give order totals"}},
		{"commas", "customer names, order totals", []string{"customer names", "order totals"}},
		{"conjunctions", "customer names and order totals But product prices", []string{"customer names", "order totals", "product prices"}},
		{"German", "Namen der Kunden sowie Preise der Produkte", []string{"Namen der Kunden", "Preise der Produkte"}},
		{"Chinese", "客户名称，订单总额。", []string{"客户名称", "订单总额"}},
		{"lines", "customer names\norder totals", []string{"customer names", "order totals"}},
		{"what has one word is no clause", "name, city and country of customers", nil},
		{"and is left out", "customer names, city, order totals", []string{"customer names", "order totals"}},
		{"a number is not cut", "price above 1,000.50 euros", nil},
		{"nor a dotted name", "rows of shop.orders table", nil},
		{"a word that begins with one is none", "android phones sold andorra branches", nil},
		{"at most four", "aa bb, cc dd, ee ff, gg hh, ii jj", []string{"aa bb", "cc dd", "ee ff", "gg hh"}},
		{"nothing", "", nil},
		{"marks", ", . ; and or ，", nil},
	} {
		if got := clauses(tt.question); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q has the clauses %q, want %q", tt.name, tt.question, got, tt.want)
		}
	}
	if got := clauses(strings.Repeat("customer names, ", 1<<15)); len(got) != mostClauses {
		t.Errorf("a long question has %d clauses", len(got))
	}
}

func TestAQuestionSaysWhatSortOfThingItAsksFor(t *testing.T) {
	for question, want := range map[string]string{
		"When was the order sent?":                 "when",
		"Where do they live, and who pays?":        "where|who",
		"How old is the singer?":                   "how old",
		"How many singers, and how many concerts?": "how many",
		"how": "",
		"Wann und wo war das Konzert? Wie alt ist er?":          "wann|wo|wie alt",
		"names of customers":                                    "",
		"somewhere, whenever":                                   "",
		"who who WHO":                                           "who",
		"when where who whom whose wann wo wer wem wen":         "when|where|who|whom|whose|wann|wo|wer",
		"how a how b how c how d how e how f how g how h":       "how a|how b|how c|how d|how e|how f|how g|how h",
		"how a how b how c how d how e how f how g how h how i": "how a|how b|how c|how d|how e|how f|how g|how h",
	} {
		if got := strings.Join(phraseOf(question).sorts(), "|"); got != want {
			t.Errorf("%q asks for %q, want %q", question, got, want)
		}
	}
}
