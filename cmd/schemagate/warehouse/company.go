package warehouse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// company is what several files must agree on. Amounts are whole hundredths of a currency, so that sums are exact.
type company struct {
	stores     []store
	products   []product
	customers  []customer // by the day they joined
	employees  []employee
	promotions []promotion
	orders     []order // by day
	lines      []line  // by order
	promoted   []promotedOrder
	sessions   []session // by day
}

type country struct {
	iso2, iso3, name, region, currency, city string
	weight, vat                              int // share of customers, VAT in percent
}

var countries = []country{
	{"DE", "DEU", "Germany", "EMEA", "EUR", "Munich Berlin Hamburg Freiburg", 20, 19},
	{"NO", "NOR", "Norway", "EMEA", "NOK", "Oslo Bergen", 4, 25},
	{"FR", "FRA", "France", "EMEA", "EUR", "Lyon Grenoble Paris", 9, 20},
	{"GB", "GBR", "United Kingdom", "EMEA", "GBP", "London Sheffield Keswick", 8, 20},
	{"AT", "AUT", "Austria", "EMEA", "EUR", "Innsbruck Vienna", 5, 20},
	{"CH", "CHE", "Switzerland", "EMEA", "CHF", "Zurich Bern", 5, 8},
	{"IT", "ITA", "Italy", "EMEA", "EUR", "Bolzano Turin Milan", 5, 22},
	{"ES", "ESP", "Spain", "EMEA", "EUR", "Bilbao Madrid", 4, 21},
	{"NL", "NLD", "Netherlands", "EMEA", "EUR", "Utrecht Amsterdam", 4, 21},
	{"SE", "SWE", "Sweden", "EMEA", "SEK", "Stockholm Umea", 3, 25},
	{"PL", "POL", "Poland", "EMEA", "PLN", "Krakow Gdansk", 3, 23},
	{"PT", "PRT", "Portugal", "EMEA", "EUR", "Porto Lisbon", 2, 23},
	{"US", "USA", "United States", "AMER", "USD", "Denver Seattle Boston", 12, 7},
	{"CA", "CAN", "Canada", "AMER", "CAD", "Vancouver Calgary", 4, 12},
	{"BR", "BRA", "Brazil", "AMER", "BRL", "Curitiba", 1, 17},
	{"MX", "MEX", "Mexico", "AMER", "MXN", "Monterrey", 1, 16},
	{"JP", "JPN", "Japan", "APAC", "JPY", "Nagano Tokyo", 4, 10},
	{"AU", "AUS", "Australia", "APAC", "AUD", "Hobart Sydney", 3, 10},
	{"NZ", "NZL", "New Zealand", "APAC", "NZD", "Queenstown", 2, 15},
	{"SG", "SGP", "Singapore", "APAC", "SGD", "Singapore", 1, 9},
}

// currency has the plan rate: units for one euro, in ten-thousandths.
type currency struct {
	code, name string
	rate       int64
}

var currencies = []currency{
	{"EUR", "Euro", 10000}, {"NOK", "Norwegian krone", 115000}, {"GBP", "Pound sterling", 8600},
	{"CHF", "Swiss franc", 9700}, {"SEK", "Swedish krona", 114000}, {"PLN", "Polish zloty", 44000},
	{"USD", "US dollar", 10900}, {"CAD", "Canadian dollar", 14700}, {"BRL", "Brazilian real", 54000},
	{"MXN", "Mexican peso", 185000}, {"JPY", "Japanese yen", 1580000}, {"AUD", "Australian dollar", 16400},
	{"NZD", "New Zealand dollar", 17700}, {"SGD", "Singapore dollar", 14600},
}

// channel is where an order comes from. Orders of a shop name a store.
type channel struct {
	code, name, kind string
	weight           int
	shop             bool
}

var channels = []channel{
	{"WEB", "Web shop", "digital", 44, false}, {"STO", "Store", "physical", 33, true},
	{"MKT", "Marketplace", "digital", 12, false}, {"APP", "Mobile app", "digital", 9, false},
	{"OUT", "Outlet", "physical", 2, true},
}

var (
	categories  = []string{"Footwear", "Jackets", "Tents", "Sleeping bags", "Backpacks", "Climbing", "Cooking", "Navigation", "Base layers", "Trousers", "Cycling", "Accessories"}
	brands      = []string{"Fjellvind", "Alpenrose", "Cairn & Co", "Nordlys", "Terravia", "Kestrel", "Basecamp Nine", "Granit", "Lumen", "Ostwind", "Pico", "Wayfare"}
	departments = []string{"Retail", "Logistics", "E-Commerce", "Finance", "Human Resources", "Information Technology", "Marketing", "Purchasing", "Customer Service", "Legal"}
)

type store struct {
	country int
	kind    string
}

type product struct {
	category, brand int
	price, cost     int64 // EUR cents
}

type customer struct {
	country     int
	first, last string
	since       int
	member      bool // of the loyalty programme
}

func (c *customer) email(i int) string {
	return strings.ToLower(c.first+"."+c.last) + fmt.Sprintf("%d@example.org", i+1)
}

type employee struct {
	department, country int
	hired, left         int // left is past lastDay for whoever stays
	salary              int64
}

type promotion struct {
	name      string
	from, to  int
	percent   int64
	mechanism string
}

type order struct {
	customer, country, store int // store is -1 where there is none
	channel, day             int
	status                   string
	net, discount            int64 // EUR cents
	quantity                 int64
	firstLine, lines         int
}

type line struct {
	order, product      int
	quantity, returned  int64
	net, discount, cost int64 // EUR cents
}

type promotedOrder struct {
	order, promotion int
	allocated        int64 // the part of the order's net that counts for the promotion, EUR cents
}

type session struct {
	day, country    int
	customer, order int // -1 where unknown, or where nothing was ordered
}

func newCompany(seed uint64) *company {
	r := rand.New(rand.NewPCG(seed, 0))
	c := &company{}
	var byWeight, channelByWeight []int
	for i, co := range countries {
		for range co.weight {
			byWeight = append(byWeight, i)
		}
	}
	for i, ch := range channels {
		for range ch.weight {
			channelByWeight = append(channelByWeight, i)
		}
	}
	c.stores = make([]store, 64)
	for i := range c.stores {
		c.stores[i] = store{byWeight[r.IntN(len(byWeight))], []string{"high street", "high street", "mall", "flagship", "clearance"}[i%5]}
	}
	c.products = make([]product, 900)
	for i := range c.products {
		price := int64(900 + r.IntN(26000))
		price -= price%100 - 95 // 34.95, as shops do
		c.products[i] = product{r.IntN(len(categories)), r.IntN(len(brands)), price, price * int64(42+r.IntN(22)) / 100}
	}
	c.customers = make([]customer, 6000)
	for i := range c.customers {
		since := 0 // everybody from before the CRM was replaced
		if i >= 2400 {
			since = (i - 2400) * lastDay / 3600
		}
		c.customers[i] = customer{byWeight[r.IntN(len(byWeight))], firstName(r, 0).(string), lastName(r, 0).(string), since, r.IntN(100) < 46}
	}
	c.employees = make([]employee, 860)
	for i := range c.employees {
		d := []int{0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9}[r.IntN(17)]
		e := employee{department: d, country: byWeight[r.IntN(len(byWeight))], hired: r.IntN(lastDay - 60), left: lastDay + 1}
		if r.IntN(100) < 16 {
			e.left = e.hired + 30 + r.IntN(lastDay-e.hired-30)
		}
		e.salary = int64(2600000+d*310000+r.IntN(4200000)) / 10000 * 10000
		c.employees[i] = e
	}
	c.promote(r)
	c.sell(r, channelByWeight)
	c.browse(r, byWeight)
	return c
}

// promote plans a campaign for about every month and two that always run.
func (c *company) promote(r *rand.Rand) {
	seasons := []string{"Winter Sale", "Snow Days", "Spring Start", "Trail Weeks", "Camping Days", "Summer Sale", "Peak Season", "Back to Trail", "Autumn Layers", "Anniversary", "Black Week", "Advent Deals"}
	for m := range 36 {
		from := min(m*365/12+r.IntN(6), lastDay-20)
		c.promotions = append(c.promotions, promotion{
			fmt.Sprintf("%s %d", seasons[m%12], 2023+m/12), from, from + 12 + r.IntN(12), int64(5 + 5*r.IntN(5)), []string{"percent off", "bundle", "voucher"}[r.IntN(3)],
		})
	}
	c.promotions = append(c.promotions,
		promotion{"Newsletter Welcome", 0, lastDay, 10, "voucher"}, promotion{"Members Week-end", 0, lastDay, 5, "percent off"})
}

// sell takes the orders. Trade grows by the year and peaks before Christmas and in early summer.
func (c *company) sell(r *rand.Rand, channelByWeight []int) {
	season := [12]int{6, 6, 7, 8, 10, 11, 10, 8, 8, 7, 11, 14}
	days := make([]int, 0, 17000)
	for len(days) < cap(days) {
		d := r.IntN(lastDay + 1)
		m := month(d) - 1
		if r.IntN(14*12) < season[m]*(10+d/firstOf24) {
			days = append(days, d)
		}
	}
	slices.Sort(days)
	storesOf := map[int][]int{}
	for i, s := range c.stores {
		storesOf[s.country] = append(storesOf[s.country], i)
	}
	known := 0
	for _, d := range days {
		for known < len(c.customers) && c.customers[known].since <= d {
			known++
		}
		share := r.Float64() // some buy often, most rarely
		o := order{customer: int(share * share * float64(known)), store: -1, day: d, channel: channelByWeight[r.IntN(len(channelByWeight))]}
		o.country = c.customers[o.customer].country
		if near := storesOf[o.country]; channels[o.channel].shop {
			if len(near) == 0 {
				o.channel = 0
			} else {
				o.store = near[r.IntN(len(near))]
			}
		}
		o.status = o.fate(r)
		c.fillBasket(r, len(c.orders), &o)
		c.orders = append(c.orders, o)
	}
}

func (o *order) fate(r *rand.Rand) string {
	switch p := r.IntN(100); {
	case p < 7:
		return "cancelled"
	case o.store >= 0 && p < 96, p < 93 && o.day < lastDay-9:
		return "delivered"
	case o.day < lastDay-9:
		return "returned"
	case p < 50:
		return "shipped"
	}
	return "processing"
}

// fillBasket adds the lines of an order and the promotions that count it.
func (c *company) fillBasket(r *rand.Rand, id int, o *order) {
	percent := int64(0)
	var used []int
	for range 2 {
		if r.IntN(100) >= 36>>(2*len(used)) {
			break
		}
		var running []int
		for i, p := range c.promotions {
			if p.from <= o.day && o.day <= p.to && !slices.Contains(used, i) {
				running = append(running, i)
			}
		}
		p := running[r.IntN(len(running))]
		used = append(used, p)
		percent += c.promotions[p].percent
	}
	o.firstLine = len(c.lines)
	for n := 1 + r.IntN(2) + r.IntN(3); o.lines < n; o.lines++ {
		share := r.Float64()
		l := line{order: id, product: int(share * share * float64(len(c.products))), quantity: 1}
		if r.IntN(5) == 0 {
			l.quantity = 2 + int64(r.IntN(3))
		}
		p := c.products[l.product]
		full := p.price * l.quantity * 100 / int64(100+countries[o.country].vat)
		l.discount = full * percent / 100
		l.net, l.cost = full-l.discount, p.cost*l.quantity*80/100
		switch back := r.IntN(100); {
		case o.status == "returned":
			l.returned = l.quantity
		case o.status == "delivered" && (back < 4 || p.category < 2 && back < 12):
			l.returned = 1
		}
		o.net, o.discount, o.quantity = o.net+l.net, o.discount+l.discount, o.quantity+l.quantity
		c.lines = append(c.lines, l)
	}
	rest := o.net
	for i, p := range used {
		part := rest / int64(len(used)-i)
		rest -= part
		c.promoted = append(c.promoted, promotedOrder{id, p, part})
	}
}

// browse makes the web sessions; a few of them end in one of the orders.
func (c *company) browse(r *rand.Rand, byWeight []int) {
	c.sessions = make([]session, 16000)
	for i := range c.sessions {
		s := session{day: r.IntN(lastDay + 1), country: byWeight[r.IntN(len(byWeight))], customer: -1, order: -1}
		switch p := r.IntN(1000); {
		case p < 100:
			o := r.IntN(len(c.orders))
			if ch := channels[c.orders[o].channel].code; ch == "WEB" || ch == "APP" {
				s = session{c.orders[o].day, c.orders[o].country, c.orders[o].customer, o}
			}
		case p < 450:
			s.customer = r.IntN(len(c.customers))
			s.country, s.day = c.customers[s.customer].country, max(s.day, c.customers[s.customer].since)
		}
		c.sessions[i] = s
	}
	slices.SortStableFunc(c.sessions, func(a, b session) int { return a.day - b.day })
}

// local converts EUR cents to hundredths of the country's currency at the plan rate.
func local(cents int64, country int) int64 {
	for _, cu := range currencies {
		if cu.code == countries[country].currency {
			return cents * cu.rate / 10000
		}
	}
	return cents
}

func id(i int) any {
	if i < 0 {
		return nil
	}
	return int64(i + 1)
}
