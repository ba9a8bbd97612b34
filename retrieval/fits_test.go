package retrieval

import (
	"testing"

	"github.com/schemagate/schemagate/catalog"
)

func TestHowLittleStillFits(t *testing.T) {
	const english, german, chinese = "names of customers", "Wie viele Kunden gibt es", "客户名称"
	for _, tt := range []struct {
		name     string
		asked    string
		coverage float64
		near     map[catalog.Kind]float64 // nil without vectors
		fits     bool
	}{
		{"enough is said", english, leastSaid, nil, true},
		{"too little is said", english, leastSaid - 0.01, nil, false},
		{"no vectors excuse another language", german, leastSaid - 0.01, nil, false},
		{"where vectors can tell, more must be said", english, leastCoverage - 0.01, map[catalog.Kind]float64{}, false},
		{"as much as that", english, leastCoverage, map[catalog.Kind]float64{}, true},
		{"or meant, by a table", english, 0, map[catalog.Kind]float64{catalog.KindTable: leastMeant}, true},
		{"by a column", english, 0, map[catalog.Kind]float64{catalog.KindColumn: leastMeant}, true},
		{"by a past query", english, 0, map[catalog.Kind]float64{catalog.KindQuery: leastMeant}, true},
		{"too little is meant", english, 0, map[catalog.Kind]float64{catalog.KindTable: leastMeant - 0.01, catalog.KindColumn: leastMeant - 0.01}, false},
		{"less is enough in German", german, leastForeign, map[catalog.Kind]float64{}, true},
		{"but not nothing", german, leastForeign - 0.01, map[catalog.Kind]float64{}, false},
		{"less need be meant in German", german, 0, map[catalog.Kind]float64{catalog.KindTable: leastForeignMeant}, true},
		{"likewise in Chinese", chinese, 0, map[catalog.Kind]float64{catalog.KindTable: leastForeignMeant}, true},
		{"but not nothing in Chinese", chinese, 0, map[catalog.Kind]float64{catalog.KindTable: leastForeignMeant - 0.01}, false},
	} {
		b := &Board{asked: tt.asked, said: phraseOf(tt.asked), coverage: tt.coverage}
		if tt.near != nil {
			for _, k := range catalog.Kinds {
				b.near[k] = map[uint32]float64{}
			}
			for k, x := range tt.near {
				b.near[k][1] = x
			}
		}
		if got := b.fits(); got != tt.fits {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
