package facts

import (
	"bufio"
	"bytes"
	"container/list"
	"container/ring"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"go/types"
	"image"
	"image/color"
	"io"
	"log"
	"log/slog"
	"maps"
	"math"
	"math/big"
	mrand "math/rand"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
	"unicode"
	"unsafe"
)

var (
	update   = flag.Bool("update", false, "write zcalls_test.go")
	only     = flag.String("facts", "", "call the functions whose names match this regular expression")
	seedFlag = flag.Uint64("seed", 1, "decides what functions are called with")
)

// uncalled are functions that TestTruth can't call, or must not, and why.
var uncalled = regexp.MustCompile(`^\(?\*?(?:` +
	`testing\.` + // it has a test of its own only while that runs
	`|net/http\.` + // as url.Values, and the rest needs a server; it would double the test binary
	`|compress/gzip\.` + // its state takes a megabyte to look at
	`|log\.|log/slog\.` + // they have what they print to in common with the test
	`|os\.` + // the files of the machine
	`)`)

// isCalled reports whether TestTruth calls the function of that name.
func isCalled(name string, e *Entry) bool {
	return !e.Has(Blocks|Exits|Ends|Setenv) && !uncalled.MatchString(name)
}

// TestTruth calls the functions of the table with arguments that notice what happens to them, and
// compares that with what the table says: whose memory changed, which methods and functions of the
// caller were called, where results lead, whether the same arguments give the same results, and
// whether it panicked.
func TestTruth(t *testing.T) {
	t.Logf("go test ./gen/internal/facts -run TestTruth -seed %d", *seedFlag)
	names, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	signatures := make(map[string]*types.Signature)
	for fn := range listed(t) {
		signatures[typeParams.ReplaceAllString(fn.FullName(), "")] = fn.Signature()
	}
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	if os.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	table := std()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		e := table[name]
		if !names.MatchString(name) || !isCalled(name, e) {
			continue
		}
		sig := signatures[name]
		if r := sig.Recv(); r != nil && types.IsInterface(r.Type()) {
			continue // what it does is up to who implements it
		}
		fn, ok := calls[name]
		if !ok {
			t.Errorf("%s is not in zcalls_test.go: go test ./gen/internal/facts -run TestCalls -update", name)
			continue
		}
		c := newClaims(name, e, sig)
		for trial := uint64(0); trial < 20 || trial < 2000 && len(c.missing()) > 0; trial++ {
			c.try(reflect.ValueOf(fn), trial)
		}
		for _, w := range append(slices.Sorted(maps.Keys(c.wrong)), c.missing()...) {
			t.Errorf("%s: %s", name, w)
		}
	}
}

// claims are what the table says of a function, and what was seen of it.
type claims struct {
	name     string
	entry    *Entry
	slots    []Slot // receiver first
	returned bool
	seen     []Word          // by slot
	wrong    map[string]bool // what was seen and is not said
}

func newClaims(name string, e *Entry, sig *types.Signature) *claims {
	c := &claims{name: name, entry: e, wrong: make(map[string]bool)}
	recv, params := e.Slots(sig)
	if sig.Recv() != nil && !strings.Contains(name, "Endian)") {
		c.slots = append(c.slots, recv)
	}
	c.slots = append(c.slots, params...)
	c.seen = make([]Word, len(c.slots))
	return c
}

// slow are functions that take time in proportion to a number.
var slow = map[string]bool{"math.Jn": true, "math.Yn": true}

// missing is what the table says and nothing has shown yet.
func (c *claims) missing() (missing []string) {
	if !c.returned {
		missing = append(missing, "it never returns")
	}
	for i, s := range c.slots {
		for _, w := range []Word{Changes, Calls} {
			if w == Changes && s.Has(Calls) || c.name == "(*bytes.Buffer).Grow" {
				continue // what the methods of the caller change; what is moved elsewhere
			}
			if s.Has(w) && c.seen[i]&w == 0 {
				missing = append(missing, fmt.Sprintf("slot %d: nothing of what the table says is ever seen: %v", i, wordsOf(w)))
			}
		}
	}
	return missing
}

// wordsOf are the names of words.
func wordsOf(w Word) (names []string) {
	for name, word := range words {
		if w&word == word && name != "appends" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// try calls the function once, and once more with the same.
func (c *claims) try(fn reflect.Value, trial uint64) {
	probes = probes[:0]
	first, panicked := c.call(fn, trial, true)
	if panicked {
		if c.entry.Has(Total) {
			c.wrong["it panics"] = true
		}
		return
	}
	c.returned = true
	if c.entry.Has(Env | Clock | Random | Global | Polls) {
		return
	}
	if second, _ := c.call(fn, trial, false); first != second {
		c.wrong["the same arguments give other results"] = true
	}
}

// call makes arguments, calls fn, and returns its results as text.
func (c *claims) call(fn reflect.Value, trial uint64, watch bool) (results string, panicked bool) {
	m := &maker{rand: rand.New(rand.NewPCG(*seedFlag, trial)), extreme: c.entry.Has(Total) && !slow[c.name], name: c.name}
	typ := fn.Type()
	var args []reflect.Value
	for i := range typ.NumIn() {
		m.slot = i
		if typ.IsVariadic() && i == typ.NumIn()-1 {
			for range 2 {
				args = append(args, m.value(typ.In(i).Elem()))
			}
			continue
		}
		args = append(args, m.value(typ.In(i)))
	}
	m.relate(args)
	before, led := make([]string, len(args)), make([]ranges, len(args))
	for i, a := range args {
		before[i], led[i] = dump(a), reach(a)
	}
	called = nil
	out, panicked := tryCall(fn, args)
	if panicked {
		return "", true
	}
	var text strings.Builder
	var ends []ranges
	for _, r := range out {
		text.WriteString(dump(r) + ";")
		ends = append(ends, reach(r))
	}
	if !watch {
		return text.String(), false
	}
	slot := func(i int) int { return min(i, len(c.slots)-1) }
	for i, a := range args {
		s := c.slots[slot(i)]
		if dump(a) != before[i] {
			c.see(slot(i), Changes|State|Fills, "changes")
		}
		for _, r := range ends {
			if led[i].meets(r) {
				c.see(slot(i), Returns|Keeps, "is where a result leads")
			}
		}
		for j, b := range args {
			if i != j && !led[i].meets(led[j]) && led[i].meets(reach(b)) && !s.Has(Keeps|Returns) && !c.slots[slot(j)].Has(Keeps|Returns) {
				c.wrong[fmt.Sprintf("slots %d and %d lead to the same memory afterwards", i, j)] = true
			}
		}
	}
	for _, call := range called {
		s := c.slots[slot(call.slot)]
		text := call.method == "Error" // of a probe, that is all
		switch {
		case s.Has(Calls) && (s.Methods == nil || slices.Contains(s.Methods, call.method)):
			c.seen[slot(call.slot)] |= Calls
		case slices.Contains(c.entry.Wraps, call.method):
		case s.Has(Formats) && text, s.Has(Fills) && slices.Contains(s.Methods, call.method):
		default:
			c.wrong[fmt.Sprintf("slot %d: it calls %s", call.slot, call.method)] = true
		}
	}
	return text.String(), false
}

func (c *claims) see(slot int, words Word, what string) {
	if !c.slots[slot].Has(words) {
		c.wrong[fmt.Sprintf("slot %d %s", slot, what)] = true
	}
	c.seen[slot] |= words
}

func tryCall(fn reflect.Value, args []reflect.Value) (out []reflect.Value, panicked bool) {
	defer func() {
		if recover() != nil {
			panicked = true
		}
	}()
	return fn.Call(args), false
}

// A maker makes the arguments of one call.
type maker struct {
	rand    *rand.Rand
	extreme bool // numbers of all sizes
	name    string
	slot    int
}

// A call of a method or function of ours.
type calledBack struct {
	slot   int
	method string
}

var called []calledBack

// A probe is a value with many methods, each of which says when it is called.
type probe struct{ at *int }

var probes []*int

func (m *maker) probe() probe {
	slot := m.slot
	probes = append(probes, &slot)
	return probe{&slot}
}

func (p probe) says(method string) { called = append(called, calledBack{*p.at, method}) }

func (p probe) Write(b []byte) (int, error)              { p.says("Write"); return len(b), nil }
func (p probe) WriteString(s string) (int, error)        { p.says("WriteString"); return len(s), nil }
func (p probe) ReadRune() (rune, int, error)             { p.says("ReadRune"); return 'a', 1, io.EOF }
func (p probe) Read([]byte) (int, error)                 { p.says("Read"); return 0, io.EOF }
func (p probe) Error() string                            { p.says("Error"); return "probe" }
func (p probe) Unwrap() error                            { p.says("Unwrap"); return nil }
func (p probe) Is(error) bool                            { p.says("Is"); return false }
func (p probe) As(any) bool                              { p.says("As"); return false }
func (p probe) Timeout() bool                            { p.says("Timeout"); return false }
func (p probe) RGBA() (r, g, b, a uint32)                { p.says("RGBA"); return 0x8000, 0x7000, 0x6000, 0xffff }
func (p probe) Len() int                                 { p.says("Len"); return 3 }
func (p probe) Less(i, j int) bool                       { p.says("Less"); return i < j }
func (p probe) Swap(i, j int)                            { p.says("Swap") }
func (p probe) Push(any)                                 { p.says("Push") }
func (p probe) Pop() any                                 { p.says("Pop"); return nil }
func (p probe) Int63() int64                             { p.says("Int63"); return 7 }
func (p probe) Uint64() uint64                           { p.says("Uint64"); return 7 }
func (p probe) Seed(int64)                               { p.says("Seed") }
func (p probe) Scan(state fmt.ScanState, _ rune) error   { p.says("Scan"); return nil }
func (p probe) UnmarshalJSON([]byte) error               { p.says("UnmarshalJSON"); return nil }
func (p probe) UnmarshalText([]byte) error               { p.says("UnmarshalText"); return nil }
func (p probe) Deadline() (d time.Time, ok bool)         { p.says("Deadline"); return d, false }
func (p probe) Done() <-chan struct{}                    { p.says("Done"); return nil }
func (p probe) Err() error                               { p.says("Err"); return nil }
func (p probe) Value(any) any                            { p.says("Value"); return nil }
func (p probe) Bounds() image.Rectangle                  { p.says("Bounds"); return image.Rect(0, 0, 2, 2) }
func (p probe) At(int, int) color.Color                  { p.says("At"); return color.Gray{} }
func (p probe) ColorModel() color.Model                  { p.says("ColorModel"); return color.GrayModel }
func (p probe) Enabled(context.Context, slog.Level) bool { p.says("Enabled"); return true }

// An order is a binary.ByteOrder of the caller.
type order struct {
	binary.AppendByteOrder
	p probe
}

func (o order) Uint16(b []byte) uint16       { o.p.says("Uint16"); return 1 }
func (o order) Uint32(b []byte) uint32       { o.p.says("Uint32"); return 1 }
func (o order) Uint64(b []byte) uint64       { o.p.says("Uint64"); return 1 }
func (o order) PutUint16(b []byte, v uint16) { o.p.says("PutUint16"); b[0] = byte(v) + 1 }
func (o order) PutUint32(b []byte, v uint32) { o.p.says("PutUint32"); b[0] = byte(v) + 1 }
func (o order) PutUint64(b []byte, v uint64) { o.p.says("PutUint64"); b[0] = byte(v) + 1 }
func (o order) AppendUint16(b []byte, v uint16) []byte {
	o.p.says("AppendUint16")
	return append(b, 1, 2)
}
func (o order) AppendUint32(b []byte, v uint32) []byte {
	o.p.says("AppendUint32")
	return append(b, 1, 2, 3, 4)
}
func (o order) AppendUint64(b []byte, v uint64) []byte {
	o.p.says("AppendUint64")
	return append(b, 1, 2, 3, 4, 5, 6, 7, 8)
}
func (o order) String() string { o.p.says("String"); return "order" }

func (m *maker) maybe(f func()) {
	if m.rand.IntN(2) == 0 {
		f()
	}
}

// text is what strings and bytes are made of.
var texts = []string{"12345678", "-7", "ab,cd ef", "3.25", "a1b2c3d4", "[1, 2]", "{\"v\": 1}", "2020-01-02T03:04:05Z", "\"quoted\"", "ffee", "", " \n x", "\xff\xfe", "AbÄß"}

func (m *maker) text() string { return texts[m.rand.IntN(len(texts))] }

func (m *maker) int() int64 {
	if m.extreme && m.rand.IntN(2) == 0 {
		return []int64{math.MinInt64, math.MaxInt64, -1, 99, 1 << 20}[m.rand.IntN(5)]
	}
	return m.rand.Int64N(14) - 1
}

// makers make values of the types that need more than their fields.
var makers map[reflect.Type]func(m *maker) any

func init() {
	makers = map[reflect.Type]func(m *maker) any{
		reflect.TypeFor[*bytes.Buffer]():     func(m *maker) any { b := bytes.NewBuffer([]byte(m.text() + "1 2")); b.ReadRune(); return b },
		reflect.TypeFor[*bytes.Reader]():     func(m *maker) any { r := bytes.NewReader([]byte(m.text() + "1 2")); r.ReadByte(); return r },
		reflect.TypeFor[*strings.Reader]():   func(m *maker) any { r := strings.NewReader(m.text() + "1 2"); r.ReadByte(); return r },
		reflect.TypeFor[*strings.Builder]():  func(m *maker) any { b := new(strings.Builder); b.WriteString(m.text()); return b },
		reflect.TypeFor[*strings.Replacer](): func(m *maker) any { r := strings.NewReplacer("1", "one", "a", "b"); r.Replace("1"); return r },
		reflect.TypeFor[*regexp.Regexp]():    func(m *maker) any { return regexp.MustCompile([]string{`(\d)(\d*)`, `a|ab`, `[a-c]+`}[m.rand.IntN(3)]) },
		reflect.TypeFor[*big.Int](): func(m *maker) any {
			n := new(big.Int).Lsh(big.NewInt(m.rand.Int64N(1000)+2), uint(m.rand.IntN(150)))
			return n.Add(n, big.NewInt(m.rand.Int64N(2)))
		},
		reflect.TypeFor[*big.Rat]():            func(m *maker) any { return big.NewRat(m.rand.Int64N(1000)+1, m.rand.Int64N(99)+1) },
		reflect.TypeFor[*big.Float]():          func(m *maker) any { return big.NewFloat(float64(m.rand.IntN(1000)) / 8) },
		reflect.TypeFor[*list.List]():          func(m *maker) any { l := list.New(); l.PushBack(1); l.PushBack(2); l.PushBack(3); return l },
		reflect.TypeFor[*ring.Ring]():          func(m *maker) any { return ring.New(3) },
		reflect.TypeFor[*csv.Writer]():         func(m *maker) any { return csv.NewWriter(m.probe()) },
		reflect.TypeFor[*tabwriter.Writer]():   func(m *maker) any { return tabwriter.NewWriter(m.probe(), 0, 8, 1, ' ', 0) },
		reflect.TypeFor[*json.Encoder]():       func(m *maker) any { return json.NewEncoder(m.probe()) },
		reflect.TypeFor[*base64.Encoding]():    func(m *maker) any { return base64.StdEncoding },
		reflect.TypeFor[*unicode.RangeTable](): func(m *maker) any { return &unicode.RangeTable{R16: []unicode.Range16{{1, 90, 1}}} },
		reflect.TypeFor[*time.Location]():      func(m *maker) any { return time.UTC },
		reflect.TypeFor[time.Time]():           func(m *maker) any { return time.Unix(m.rand.Int64N(1e9), 0).UTC() },
		reflect.TypeFor[*image.Paletted](): func(m *maker) any {
			return image.NewPaletted(image.Rect(0, 0, 9, 9), color.Palette{color.Gray{1}, color.Gray{200}})
		},
		reflect.TypeFor[color.Palette]():          func(m *maker) any { return color.Palette{color.Gray{1}, color.Gray{2}} },
		reflect.TypeFor[binary.ByteOrder]():       func(m *maker) any { return order{p: m.probe()} },
		reflect.TypeFor[binary.AppendByteOrder](): func(m *maker) any { return order{p: m.probe()} },
		reflect.TypeFor[*bufio.Writer]():          func(m *maker) any { w := bufio.NewWriterSize(m.probe(), 16); w.WriteString("123456"); return w },
		reflect.TypeFor[*bufio.Scanner](): func(m *maker) any {
			s := bufio.NewScanner(strings.NewReader("a\nb"))
			m.maybe(func() { s.Scan() })
			return s
		},
		reflect.TypeFor[*mrand.Rand](): func(m *maker) any { return mrand.New(mrand.NewSource(m.rand.Int64())) },
		reflect.TypeFor[*rand.Rand]():  func(m *maker) any { return rand.New(rand.NewPCG(m.rand.Uint64(), 1)) },
		reflect.TypeFor[*log.Logger](): func(m *maker) any { return log.New(io.Discard, "", 0) },
	}
	for _, img := range []image.Image{image.NewAlpha(image.Rect(0, 0, 9, 9)), image.NewAlpha16(image.Rect(0, 0, 9, 9)), image.NewCMYK(image.Rect(0, 0, 9, 9)), image.NewGray(image.Rect(0, 0, 9, 9)),
		image.NewGray16(image.Rect(0, 0, 9, 9)), image.NewNRGBA(image.Rect(0, 0, 9, 9)), image.NewNRGBA64(image.Rect(0, 0, 9, 9)), image.NewRGBA(image.Rect(0, 0, 9, 9)), image.NewRGBA64(image.Rect(0, 0, 9, 9))} {
		t := reflect.TypeOf(img)
		makers[t] = func(m *maker) any {
			v := reflect.New(t.Elem())
			v.Elem().Set(reflect.ValueOf(img).Elem())
			pix := v.Elem().FieldByName("Pix")
			pix.Set(reflect.MakeSlice(pix.Type(), pix.Len(), pix.Len()))
			return v.Interface()
		}
	}
}

// value makes a value of type t.
func (m *maker) value(t reflect.Type) reflect.Value {
	if make := makers[t]; make != nil {
		return reflect.ValueOf(make(m)).Convert(t)
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(m.rand.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(m.int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(m.int() & math.MaxInt64))
		if !m.extreme {
			v.SetUint(uint64(m.rand.IntN(120)))
			if t.Kind() == reflect.Uint16 {
				v.SetUint(uint64(m.rand.IntN(1 << 16)))
			}
		}
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, 1, -2.5, math.Inf(1), math.NaN(), 1e300, 17}[m.rand.IntN(7)])
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(complex(float64(m.rand.IntN(9))-3, float64(m.rand.IntN(9))-3))
	case reflect.String:
		v.SetString(m.text())
	case reflect.Slice:
		n := 3 + m.rand.IntN(3)
		s := reflect.MakeSlice(t, n, n+16)
		if t.Elem().Kind() == reflect.Uint8 {
			text := m.text()
			s = reflect.MakeSlice(t, len(text), len(text)+200)
			reflect.Copy(s, reflect.ValueOf([]byte(text)))
			return s
		}
		for i := range n {
			s.Index(i).Set(m.value(t.Elem()))
		}
		return s
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(m.value(t.Elem()))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for range 3 {
			v.SetMapIndex(m.value(t.Key()), m.value(t.Elem()))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(m.value(t.Elem()))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(m.value(t.Field(i).Type))
			}
		}
	case reflect.Func:
		v.Set(m.function(t))
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return m.anything(v)
		}
		p := reflect.ValueOf(m.probe())
		if m.name == "errors.As" && m.rand.IntN(2) == 0 {
			p = reflect.ValueOf(&os.PathError{Err: io.EOF})
		}
		if !p.Type().Implements(t) {
			panic("no value of type " + t.String())
		}
		v.Set(p)
	}
	return v
}

// anything makes a value for a parameter of type any, by what the function looks for in it.
func (m *maker) anything(v reflect.Value) reflect.Value {
	var a any = m.probe()
	switch {
	case m.name == "errors.As":
		a = new(*os.PathError)
	case m.name == "fmt.Sscan", m.name == "fmt.Sscanf", m.name == "fmt.Sscanln":
		p := m.probe()
		a = &p
	case m.name == "encoding/json.Unmarshal":
		a = &struct{ V probe }{m.probe()}
		if m.rand.IntN(2) == 0 {
			a = new([]int)
		}
	case strings.HasPrefix(m.name, "encoding/binary."):
		a = &[]uint32{1}[0]
	case strings.HasPrefix(m.name, "sort.Slice"):
		a = []int{3, 1, 2}
	case strings.HasPrefix(m.name, "(*container/"):
		a = new(int)
	}
	v.Set(reflect.ValueOf(a))
	return v
}

// function makes a function that says when it is called; one that yields ends after three elements.
func (m *maker) function(t reflect.Type) reflect.Value {
	p := m.probe()
	seed := m.rand.Uint64()
	return reflect.MakeFunc(t, func(args []reflect.Value) (out []reflect.Value) {
		p.says("it")
		inner := &maker{rand: rand.New(rand.NewPCG(seed, 0)), slot: m.slot, name: m.name}
		if len(args) == 1 && args[0].Kind() == reflect.Func { // an iterator
			for range 3 {
				var values []reflect.Value
				for i := range args[0].Type().NumIn() {
					values = append(values, inner.value(args[0].Type().In(i)))
				}
				if !args[0].Call(values)[0].Bool() {
					break
				}
			}
		}
		for i := range t.NumOut() {
			out = append(out, inner.value(t.Out(i)))
		}
		return out
	})
}

// relate makes arguments fit each other, as few functions need.
func (m *maker) relate(args []reflect.Value) {
	switch {
	case strings.HasPrefix(m.name, "(*container/list.List)"):
		l := args[0].Interface().(*list.List)
		for i := range args[1:] {
			if args[i+1].Type() == reflect.TypeFor[*list.Element]() {
				args[i+1] = reflect.ValueOf([]*list.Element{l.Front().Next(), l.Back()}[i%2])
			}
		}
	case strings.HasSuffix(m.name, ").Expand"), strings.HasSuffix(m.name, ").ExpandString"):
		re, src := args[0].Interface().(*regexp.Regexp), fmt.Sprint(args[3].Interface())
		if b, ok := args[3].Interface().([]byte); ok {
			src = string(b)
		}
		args[2] = reflect.ValueOf("$0 x").Convert(args[2].Type())
		args[4] = reflect.ValueOf(re.FindStringSubmatchIndex(src))
	case m.name == "strconv.AppendFloat", m.name == "strconv.FormatFloat", m.name == "strconv.FormatComplex":
		last := len(args) - 1
		args[last-2] = reflect.ValueOf(byte('g'))
		args[last] = reflect.ValueOf(map[bool]int{false: 64, true: 128}[m.name == "strconv.FormatComplex"])
	case strings.HasSuffix(m.name, ").ModSqrt"):
		args[2] = reflect.ValueOf(big.NewInt(13))
	case m.name == "(*time.Time).UnmarshalBinary", m.name == "(*time.Time).UnmarshalJSON":
		at := time.Unix(m.rand.Int64N(1e9), 0).UTC()
		data, _ := at.MarshalJSON()
		if strings.HasSuffix(m.name, "Binary") {
			data, _ = at.MarshalBinary()
		}
		args[1] = reflect.ValueOf(data)
	case strings.HasSuffix(m.name, ").FillBytes"):
		args[1] = reflect.ValueOf(make([]byte, 40))
	}
}

// dump is what v leads to, as text, without addresses. What only probes hold is left out.
func dump(v reflect.Value) string {
	var b strings.Builder
	seen := make(map[unsafe.Pointer]int)
	var visit func(v reflect.Value, depth int)
	visit = func(v reflect.Value, depth int) {
		if !v.IsValid() || depth > 30 {
			b.WriteString("nil")
			return
		}
		if v.Type() == reflect.TypeFor[probe]() || v.Type() == reflect.TypeFor[*time.Location]() || v.Type() == reflect.TypeFor[order]() {
			return
		}
		switch v.Kind() {
		case reflect.Bool:
			fmt.Fprint(&b, v.Bool())
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			b.WriteString(strconv.FormatInt(v.Int(), 10))
		case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
			b.WriteString(strconv.FormatUint(v.Uint(), 10))
		case reflect.Float32, reflect.Float64:
			fmt.Fprint(&b, math.Float64bits(v.Float()))
		case reflect.Complex64, reflect.Complex128:
			fmt.Fprint(&b, v.Complex())
		case reflect.String:
			fmt.Fprintf(&b, "%q", v.String())
		case reflect.Func, reflect.Chan, reflect.UnsafePointer:
			fmt.Fprint(&b, v.IsNil())
		case reflect.Pointer:
			if v.IsNil() {
				b.WriteString("nil")
				return
			}
			if n, ok := seen[v.UnsafePointer()]; ok {
				fmt.Fprintf(&b, "#%d", n)
				return
			}
			seen[v.UnsafePointer()] = len(seen)
			b.WriteString("&")
			visit(v.Elem(), depth+1)
		case reflect.Interface:
			if v.IsNil() {
				b.WriteString("nil")
				return
			}
			b.WriteString(v.Elem().Type().String())
			visit(v.Elem(), depth+1)
		case reflect.Slice:
			fmt.Fprintf(&b, "%d[", v.Len())
			if v.IsNil() {
				b.WriteString("nil]")
				return
			}
			full := v.Slice3(0, v.Len(), v.Len())
			if v.CanInterface() {
				full = v.Slice(0, v.Cap())
			}
			for i := range full.Len() {
				visit(full.Index(i), depth+1)
				b.WriteString(" ")
			}
			b.WriteString("]")
		case reflect.Array:
			for i := range v.Len() {
				visit(v.Index(i), depth+1)
				b.WriteString(" ")
			}
		case reflect.Struct:
			b.WriteString("{")
			for i := range v.NumField() {
				visit(v.Field(i), depth+1)
				b.WriteString(" ")
			}
			b.WriteString("}")
		case reflect.Map:
			var entries []string
			for it := v.MapRange(); it.Next(); {
				entries = append(entries, dump(it.Key())+":"+dump(it.Value()))
			}
			slices.Sort(entries)
			fmt.Fprint(&b, entries)
		}
	}
	visit(v, 0)
	return b.String()
}

// ranges are pieces of memory that can be written to.
type ranges [][2]uintptr

// reach returns the memory that v leads to.
func reach(v reflect.Value) (found ranges) {
	seen := make(map[uintptr]bool)
	add := func(at, size uintptr) bool {
		if seen[at] || size == 0 {
			return false
		}
		seen[at] = true
		found = append(found, [2]uintptr{at, at + size})
		return true
	}
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		if !v.IsValid() || v.Type() == reflect.TypeFor[*time.Location]() || v.Type() == reflect.TypeFor[probe]() {
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && add(v.Pointer(), v.Type().Elem().Size()) {
				visit(v.Elem())
			}
		case reflect.Interface:
			visit(v.Elem())
		case reflect.Slice:
			if add(v.Pointer(), uintptr(v.Cap())*v.Type().Elem().Size()) {
				for i := range v.Len() {
					visit(v.Index(i))
				}
			}
		case reflect.Array:
			for i := range v.Len() {
				visit(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				visit(v.Field(i))
			}
		case reflect.Map:
			if !v.IsNil() && add(v.Pointer(), 1) {
				for it := v.MapRange(); it.Next(); {
					visit(it.Key())
					visit(it.Value())
				}
			}
		}
	}
	visit(v)
	return found
}

// meets reports whether two sets of memory have any in common.
func (r ranges) meets(other ranges) bool {
	for _, a := range r {
		for _, b := range other {
			if a[0] < b[1] && b[0] < a[1] {
				return true
			}
		}
	}
	return false
}
