package embed

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
)

func model(t testing.TB) *Model {
	t.Helper()
	m, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestVectorsAreThoseOfTheRecipe(t *testing.T) {
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var reference []struct {
		Text   string    `json:"text"`
		Pieces []int32   `json:"pieces"`
		Vector []float32 `json:"vector"`
	}
	if err := json.Unmarshal(b, &reference); err != nil {
		t.Fatal(err)
	}
	if len(reference) < 10 {
		t.Fatalf("only %d texts", len(reference))
	}
	m := model(t)
	for _, want := range reference {
		var ids []int32
		new(cutter).each(&m.pieces, want.Text, func(id int32) { ids = append(ids, id) })
		if len(ids) != len(want.Pieces) {
			t.Errorf("%q is cut into %v, want %v", want.Text, ids, want.Pieces)
			continue
		}
		for i, id := range ids {
			if id != want.Pieces[i] {
				t.Errorf("%q is cut into %v, want %v", want.Text, ids, want.Pieces)
				break
			}
		}
		got := m.Vector(want.Text)
		for i := range got {
			if math.Abs(float64(got[i]-want.Vector[i])) > 1e-4 {
				t.Errorf("%q: dimension %d is %v, want %v", want.Text, i, got[i], want.Vector[i])
				break
			}
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"custID2 OrderIDs":      "cust id 2 order ids",
		"XMLHttpRequest IDs":    "xml http request ids",
		"amt_net-rev.total":     "amt net rev total",
		"ÜBERGRÖSSE Straße":     "übergrösse straße",
		"IDsets":                "i dsets",
		"１２３ ﬁn":                "123 fin",
		"客户ID":                  "客户id",
		"a\xffb":                "a b",
		" ,;_":                  "",
		"":                      "",
		"2024-01 v2beta 3rdTry": "2024 01 v 2 beta 3 rd try",
	} {
		var got []string
		eachWord(norm.NFKC.String(text), func(w string) { got = append(got, w) })
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q has the words %q, want %q", text, s, want)
		}
	}
}

func TestVectorsHaveLengthOne(t *testing.T) {
	m := model(t)
	for _, text := range []string{"a", "order", "orders of a customer", "订单", strings.Repeat("order ", 1000)} {
		var square float64
		for _, x := range m.Vector(text) {
			square += float64(x) * float64(x)
		}
		if math.Abs(square-1) > 1e-5 {
			t.Errorf("%.20q: squared length %v", text, square)
		}
	}
}

func TestTextWithoutWordsIsAllZero(t *testing.T) {
	m := model(t)
	for _, text := range []string{"", " \n", "?!_", "\xff\xfe", "𓀀𓀁"} {
		for i, x := range m.Vector(text) {
			if x != 0 {
				t.Fatalf("%q: dimension %d is %v", text, i, x)
			}
		}
		if c := Cosine(m.Vector(text), m.Vector("order")); c != 0 {
			t.Errorf("%q: cosine %v", text, c)
		}
	}
}

func TestEmbedIntoLeavesNothingOfWhatWasThere(t *testing.T) {
	m := model(t)
	out := m.Vector("warehouse")
	m.EmbedInto(out, "student")
	if c := Cosine(out, m.Vector("student")); math.Abs(float64(c)-1) > 1e-5 {
		t.Errorf("cosine %v", c)
	}
	m.EmbedInto(out, "")
	if c := Cosine(out, out); c != 0 {
		t.Errorf("an empty text into a used slice: squared length %v", c)
	}
}

func TestManyTextsGetTheVectorOfEach(t *testing.T) {
	m := model(t)
	texts := []string{"orders of a customer", "", "客户的订单", "a customer of customers"}
	got, err := m.Embed(context.Background(), texts)
	if err != nil || len(got) != len(texts) {
		t.Fatalf("%d vectors for %d texts, %v", len(got), len(texts), err)
	}
	for i, text := range texts {
		if !slices.Equal(got[i], m.Vector(text)) {
			t.Errorf("%q has another vector by itself", text)
		}
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := m.Embed(done, texts); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("after the context is done: %v", err)
	}
}

func TestMeaningIsNearAcrossWordingsAndLanguages(t *testing.T) {
	m := model(t)
	for _, tt := range []struct{ text, near, far string }{
		{"how much do workers earn", "employee: salary", "airport: runway_length"},
		{"which pupils failed", "student: grade", "invoice: amount"},
		{"Wie viele Kunden haben wir?", "customer: customer_id", "airport: runway_length"},
		{"学生的姓名", "student: name", "invoice: amount"},
		{"哪个客户的订单最多", "customer_orders: customer_id", "airport: runway_length"},
		{"OrderDate", "order_date", "customer_name"},
	} {
		q := m.Vector(tt.text)
		if near, far := Cosine(q, m.Vector(tt.near)), Cosine(q, m.Vector(tt.far)); near <= far {
			t.Errorf("%q: %.3f to %q, %.3f to %q", tt.text, near, tt.near, far, tt.far)
		}
	}
}

func TestOnlyTheStartOfAHugeTextCounts(t *testing.T) {
	m := model(t)
	for name, unit := range map[string]string{"one word": "order", "many words": "order ", "three bytes a character": "户", "nothing known": "𓀀a"} {
		start := time.Now()
		huge := m.Vector(strings.Repeat(unit, 1<<20/len(unit)))
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		if c := Cosine(huge, m.Vector(strings.Repeat(unit, longestText/len(unit)))); math.Abs(float64(c)-1) > 1e-4 {
			t.Errorf("%s: cosine %v to its start", name, c)
		}
	}
}

func TestManyMayEmbedAtOnceAndGetTheSame(t *testing.T) {
	m := model(t)
	texts := []string{"orders of a customer", "Wie viele Kunden", "客户的订单", "amt_net_rev"}
	var want [][]float32
	for _, text := range texts {
		want = append(want, model(t).Vector(text)) // by a model of its own
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out := make([]float32, m.Dim())
			for i := range 400 {
				m.EmbedInto(out, texts[i%len(texts)])
				for k, x := range out {
					if x != want[i%len(texts)][k] {
						t.Errorf("%q: dimension %d is %v, want %v", texts[i%len(texts)], k, x, want[i%len(texts)][k])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestWhatIsNoModelIsRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":             nil,
		"only a head":       built[:16],
		"cut short":         built[:len(built)-1],
		"longer":            append(append([]byte{}, built...), 0),
		"other magic":       append([]byte("SGE0"), built[4:]...),
		"lengths too great": lengthened(),
		"no dimensions":     append([]byte("SGE1\x01\x00\x00\x00"), make([]byte, 8+9)...),
	} {
		if _, err := parse(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// lengthened is a model of one piece that says to be longer than the text there is.
func lengthened() []byte {
	b := append([]byte("SGE1\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00"), make([]byte, 8)...)
	return append(b, 2, 'a', 0)
}

func TestModelIsSmallAndLoadsFast(t *testing.T) {
	if len(built) > 16<<20 {
		t.Errorf("the model has %d bytes", len(built))
	}
	fastest := time.Hour
	for range 3 {
		start := time.Now()
		model(t)
		fastest = min(fastest, time.Since(start))
	}
	if fastest > 100*time.Millisecond {
		t.Errorf("loading took %v", fastest)
	}
}

func TestNameSaysWhichModel(t *testing.T) {
	other := append([]byte{}, built...)
	other[len(other)-1] ^= 1
	changed, err := parse(other)
	if err != nil {
		t.Fatal(err)
	}
	if m := model(t); m.Name() == changed.Name() || m.Name() != model(t).Name() {
		t.Errorf("names %q and %q", m.Name(), changed.Name())
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEmbed(b *testing.B) {
	m := model(b)
	out := make([]float32, m.Dim())
	for name, text := range map[string]string{
		"question": "What are the names of the customers who ordered more than three products in the last quarter?",
		"German":   "Wie heißen die Kunden, die im letzten Quartal mehr als drei Produkte bestellt haben?",
		"Chinese":  "上个季度订购了三种以上产品的客户叫什么名字？",
		"table":    "customer_orders: order_id, customer_id, order_status_code, order_placed_datetime, total_amount",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.EmbedInto(out, text)
			}
		})
	}
}
