package eval

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// Results are what one page shows.
type Results struct {
	Reports     []Report
	Comparisons []Comparison
	Tables      []Table
}

//go:embed page.html
var pageText string

// HTML writes the results as one page that needs nothing else.
func (r Results) HTML(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"percent": func(x float64) string { return fmt.Sprintf("%.1f", x) },
		"share":   func(x float64) string { return fmt.Sprintf("%.3f", x) },
		"count":   count, "bars": recallBars, "ranges": ranges, "groups": groupRows, "misses": missRows, "spans": spans,
		"sheet": sheetOf, "curves": curves, "panels": panels,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("eval: the page's template: %w", err)
	}
	return page.Execute(w, r)
}

// count writes a number with a comma at each thousand.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// pair is table and column recall at one depth, with its place in the picture.
type pair struct {
	Label string
	X     float64 // of the label's middle
	Bars  []bar
}

type bar struct {
	Class               string
	X, Y, Width, Height float64
	Value               string
	ValueX, ValueY      float64
}

// The picture of recalls, in its own units.
const (
	chartHeight = 150.0 // of 100 percent
	chartTop    = 18.0  // room for the value above the highest bar
	chartLeft   = 44.0
	barWidth    = 34.0
	barGap      = 2.0
	pairWidth   = 100.0
)

// recallBars draws table and column recall side by side at each depth.
func recallBars(f Figures) []pair {
	var out []pair
	for i, k := range depths {
		key := fmt.Sprint(k)
		x := chartLeft + float64(i)*pairWidth
		p := pair{Label: "@" + key, X: x + barWidth + barGap/2}
		for _, series := range []struct {
			class  string
			recall map[string]float64
		}{{"tables", f.TableRecall}, {"columns", f.ColumnRecall}} {
			if v, ok := series.recall[key]; ok {
				h := v / 100 * chartHeight
				y := chartTop + chartHeight - h
				p.Bars = append(p.Bars, bar{series.class, x, y, barWidth, h, fmt.Sprintf("%.1f", v), x + barWidth/2, y - 4})
			}
			x += barWidth + barGap
		}
		out = append(out, p)
	}
	return out
}

// span is an interval on a horizontal scale, in percent of its width.
type span struct {
	Title, Value, Low, High string
	At, From, Width         float64
}

// ranges places the intervals of a run on a scale from nothing to everything.
func ranges(f Figures) []span {
	var out []span
	for _, m := range measures {
		i, ok := f.Intervals[m.Name]
		if !ok {
			continue
		}
		at := func(x float64) float64 { return 100 * x / m.Scale }
		v := m.mean(&f)
		out = append(out, span{Title: m.Title, Value: m.Text(v), Low: m.Text(i.Low), High: m.Text(i.High), At: at(v), From: at(i.Low), Width: at(i.High) - at(i.Low)})
	}
	return out
}

// spans places the differences of a comparison on one scale around nothing.
func spans(c Comparison) []span {
	most := 0.0
	for _, m := range measures {
		if d, ok := c.Differences[m.Name]; ok {
			most = max(most, math.Abs(d.Low)/m.Scale, math.Abs(d.High)/m.Scale)
		}
	}
	if most == 0 {
		most = 1
	}
	var out []span
	for _, m := range measures {
		d, ok := c.Differences[m.Name]
		if !ok {
			continue
		}
		at := func(x float64) float64 { return 50 + 48*x/m.Scale/most }
		out = append(out, span{
			Title: m.Title, Value: m.Signed(d.Difference), Low: m.Signed(d.Low), High: m.Signed(d.High),
			At: at(d.Difference), From: at(d.Low), Width: at(d.High) - at(d.Low),
		})
	}
	return out
}

// row is a line of a table with bars.
type row struct {
	Name, Count             string
	Tables, Columns         float64
	TablesText, ColumnsText string
}

func groupRows(groups map[string]Group) []row {
	var out []row
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		r := row{Name: name, Count: count(g.Questions), Tables: g.TableRecall5, TablesText: fmt.Sprintf("%.1f", g.TableRecall5), ColumnsText: "–"}
		if g.ColumnRecall10 != nil {
			r.Columns, r.ColumnsText = *g.ColumnRecall10, fmt.Sprintf("%.1f", *g.ColumnRecall10)
		}
		out = append(out, r)
	}
	return out
}

func missRows(m Misses) []row {
	var out []row
	for _, c := range causes {
		n := m.Causes[c.Name]
		share := 100 * float64(n) / float64(max(1, m.Tables))
		out = append(out, row{Name: strings.ToUpper(c.Title[:1]) + c.Title[1:], Count: count(n), Tables: share, TablesText: fmt.Sprintf("%.0f%%", share)})
	}
	return out
}

// panel draws the shares that were meant over the probabilities given, with a point for each bin.
type panel struct {
	Name                        string
	Judged, Meant, Error, Brier string
	Left, Right, Middle         float64 // of the square
	Points                      []struct{ X, Y, Radius float64 }
}

const panelStep = 210.0

func panels(of map[string]Reliability) []panel {
	var out []panel
	for _, name := range judgedNames {
		r, ok := of[name]
		if !ok {
			continue
		}
		left := chartLeft + panelStep*float64(len(out))
		share := func(x float64) string { return fmt.Sprintf("%.4f", x) }
		p := panel{
			Name: name, Judged: count(r.Judged), Meant: share(r.Meant), Error: share(r.Error), Brier: share(r.Brier),
			Left: left, Right: left + chartHeight, Middle: left + chartHeight/2,
		}
		for _, b := range r.Bins {
			if b.Judged > 0 {
				p.Points = append(p.Points, struct{ X, Y, Radius float64 }{
					left + chartHeight*b.Probability, chartTop + chartHeight*(1-b.Meant), 2 + math.Log10(float64(b.Judged)),
				})
			}
		}
		out = append(out, p)
	}
	return out
}

// tableText is a table as the page shows it.
type tableText struct {
	Heading, About string
	Head           []string
	Rows           [][]string
	Remarks        []string
}

func sheetOf(t Table) tableText {
	head, rows := t.grid()
	return tableText{t.heading(), t.about(), head, rows, t.remarks()}
}

// curve is a figure at each row of a table, as a line.
type curve struct {
	Class, Line string
	Points      []point
}

type point struct {
	X, Y, Low, High float64 // Low and High end the interval
	LabelX, LabelY  float64
	Value, Name     string
}

const curveStep = 170.0

// curves draws the figures of figure 5, and nothing for the tables.
func curves(t Table) []curve {
	if !t.isFigure() {
		return nil
	}
	y := func(x float64) float64 { return chartTop + chartHeight*(1-x/100) }
	var out []curve
	for i, class := range [...]string{"tables", "columns"} {
		c := curve{Class: class}
		var line []string
		for j, r := range t.Rows {
			f := r.Ours[i]
			if f == nil {
				continue
			}
			x := chartLeft + curveStep*(float64(j)+0.25)
			p := point{X: x, Y: y(f.Value), Low: y(f.Value), High: y(f.Value), LabelX: x, LabelY: y(f.Value) - 8, Value: fmt.Sprintf("%.1f", f.Value), Name: r.Name}
			if f.Interval != nil {
				p.Low, p.High = y(f.Low), y(f.High)
			}
			c.Points = append(c.Points, p)
			line = append(line, fmt.Sprintf("%.1f,%.1f", p.X, p.Y))
		}
		c.Line = strings.Join(line, " ")
		out = append(out, c)
	}
	return out
}
