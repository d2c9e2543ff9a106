package blocking

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// The fact about a function. It holds all that a caller can't see, in terms of the function's operands,
// so that a call can be understood without the body of its callee:
//
//	func report(w io.Writer, loss *tensor.Tensor) { fmt.Fprintln(w, loss) }
//
//	report(f, sum) // the summary of report: waits(1: report.go:3 fmt.Fprintln) blocks
//
// Summaries only say what is known, so an empty one is always safe. Facts are exported with package
// gob: fields that travel have exported names, and the order of lists is fixed, so that the output of a
// build doesn't change without need.

// maxChain bounds how far a wait is followed from callee to caller, in calls. What lies deeper is
// rarely what the reader of a finding would call the fault of the loop.
const maxChain = 3

// A Summary is the fact about one function: what callers need to know of it. The zero Summary is that
// of a function that has nothing to do with tensors; it is not exported.
//
// Operands are those of the function: [tensorapi.Recv] is the receiver, 0 the first parameter. Fields
// that make a finding say what certainly happens, as far as guards allow (Waits, Makes); fields that
// silence one say what may happen (Blocks, Mutates, Steps, Trains). Several possible callees are merged
// accordingly, see agreement.
type Summary struct {
	// Waits are the tensors that the function waits for to learn a value: at most one wait for each operand, sorted by
	// operand.
	//
	//	func read(x *tensor.Tensor) float64 { return x.Item() } // waits for operand 0
	Waits []Wait
	// Barriers are the waits to know that something is done, in the same form. A function that reads a clock has none:
	// it waits for the sake of the clock.
	//
	//	func done(x *tensor.Tensor) { x.Wait() }
	Barriers []Wait
	// Methods are the methods that the function calls on operands, or on their elements, of types that only its callers
	// know: type parameters and interfaces. A caller that passes a type whose method reads has the wait.
	Methods []Method
	// Results says for each result where its tensors come from. It is nil if nothing is known.
	//
	//	func twice(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(2) } // pending
	Results []Origin
	// Makes reports whether the function always returns one tensor, which it has just made: nobody else can have it.
	Makes bool
	// Compares are the operands that the function compares with each other by ==, or elements of them.
	//
	//	func same[T comparable](x, y T) bool { return x == y }
	Compares Operands
	// Histories says for each result whether it has a history. It is nil if none is known to have one.
	Histories []Lineage
	// Keeps are the operands that the function puts into a list or map that outlives the call. Sums and
	// Hoards are about fields of which only values are read: Sums are the operands that it adds to such
	// a field, Hoards those that it appends.
	//
	//	func (m *meter) add(loss *tensor.Tensor) { m.losses = append(m.losses, loss) } // Keeps and Hoards operand 0
	Keeps        Operands
	Sums, Hoards Operands
	// Calls says which functions that it is given the function calls, and when, sorted by operand.
	//
	//	func each(xs []*tensor.Tensor, f func(*tensor.Tensor)) { … } // calls operand 1 in a loop, with parts of operand 0
	Calls []Callback
	// Func is the summary of the function that this one returns: an iterator, a step. It is nil if it
	// returns none, or not always the same one. A function that is returned by the returned function is
	// not followed: Func.Func is nil.
	Func *Summary
	// More are the summaries of further functions that it returns beside Func.
	//
	//	add, value := smooth(0.9) // More[0] is about value
	More []Summary
	// Wraps are the operands, functions or lists of such, that the returned function calls whenever it is called.
	//
	//	func chain(hooks ...Hook) Hook { return func(e Event) { for _, h := range hooks { h(e) } } } // wraps operand 0
	Wraps Operands
	// Prints says which arguments the function prints as they are, as log.Printf does. It is nil for most functions.
	Prints *Printer
	// Builds reports whether each call builds or compiles a graph or plan, and BuiltOf from which operands.
	Builds  bool
	BuiltOf Operands
	// Clocks are the operands with a starting time. The function tells how much time has passed since
	// then, and doesn't wait before that.
	//
	//	func track(start time.Time) { log.Print(time.Since(start)) }
	Clocks Operands
	// Timer reports whether the function was made by one that started a clock, and tells how much time
	// has passed since then without a wait before that.
	//
	//	func timer() func() { start := time.Now(); return func() { log.Print(time.Since(start)) } }
	Timer bool
	// Blocks reports whether a call may wait for the device in any way, also where Waits says nothing.
	Blocks bool
	// Enqueues reports whether a call may put work on the device's queue.
	Enqueues bool
	// Mutates reports whether a call may assign cells, as training does, and Steps whether it may take a step of
	// training.
	Mutates bool
	Steps   bool
	// Trains reports whether the function trains in a loop of its own. A loop around a call is an outer, slow one then.
	Trains bool
	// Repeats are the operands that say how many steps of a computation the function takes, each from the one before.
	//
	//	func sample(x *tensor.Tensor, n int) *tensor.Tensor { for range n { x = next(x) }; return x } // repeats operand 1
	Repeats Operands
	// Fits reports whether the function computes in a loop, each iteration from the one before, and reads values to see
	// how far it has got: an iterative solver, a fit. A loop around calls of it that don't depend on each other, as
	// over numbers of clusters or folds, is a slow one, too.
	Fits bool
}

// AFact marks Summary as a fact of package analysis.
func (*Summary) AFact() {}

// A Wait is one thing that a function waits for.
type Wait struct {
	// Operand is the operand waited for, or Own.
	Operand int
	// InLoop reports whether the function waits in a loop of its own, or before or after one. A loop
	// around the call adds little to that, so a rule reports the inner loop only.
	InLoop bool
	// Guarded reports whether calls seldom hold up the device: every hundredth waits, or those in which something
	// failed, or each waits for what the call before has left.
	Guarded bool
	// Chain leads from the function to the read: the calls on the way, then the read. It has one to
	// maxChain links, and the messages of rules show it.
	Chain []Link
}

// A Method is a method that a function calls on an operand of unknown type. Its Wait is what the
// function waits for, if the method reads its receiver. The Chain of this Wait ends at the call of the
// method.
type Method struct {
	Wait
	Name string // the method's
}

// Own as the operand of a [Wait] means a tensor that the caller does not pass: one that the function
// makes, or one that it finds in a field or variable.
const Own = tensorapi.None

// A Link is one call of a chain.
type Link struct {
	Pos  string // "train.go:12"
	Call string // "loss.Item"
}

// An Origin says where the tensors that an expression stands for may come from. The zero Origin stands
// for host data, and for all that isn't known: neither is something to wait for.
type Origin struct {
	Pending bool     // an operation that was just enqueued
	From    Operands // what was passed for these operands
}

// union returns the origin of something that comes from o or from p.
func (o Origin) union(p Origin) Origin {
	return Origin{o.Pending || p.Pending, o.From | p.From}
}

// Operands is a set of operands: bit 0 is the receiver ([tensorapi.Recv], which is -1), bit i+1
// parameter i. Parameters from number 31 on have no bit and are never in a set.
type Operands uint32

// operands returns the set of operand i.
func operands(i int) Operands { return 1 << (i + 1) }

// Has reports whether operand i is in the set.
func (s Operands) Has(i int) bool { return s&operands(i) != 0 }

// all yields the operands in the set.
func (s Operands) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := tensorapi.Recv; i < 31; i++ {
			if s.Has(i) && !yield(i) {
				return
			}
		}
	}
}

// A Callback says when a function calls a function that it is given, and with what. Operand is the
// operand with the function that is called.
type Callback struct {
	Operand int
	When    tensorapi.Calls
	// Timed reports whether a clock is read before and after a call, and nothing
	// waits in between.
	Timed bool
	// Slow reports whether each call comes after a pass over data, as at the end of
	// an epoch.
	Slow bool
	// Rare reports whether it calls it in few of its own calls only, as a rate limiter does.
	Rare bool
	// Args says, for each argument of these calls, where its tensors come
	// from. It is nil if none of them is known.
	Args []Origin
}

// with adds what another call of the same operand does. It is a loop, timed or slow if one of the calls
// is; it is rare only if both are.
func (c *Callback) with(d Callback) {
	if d.When == tensorapi.Loop {
		c.When = d.When
	}
	c.Timed = c.Timed || d.Timed
	c.Slow = c.Slow || d.Slow
	c.Rare = c.Rare && d.Rare
	for i, o := range d.Args {
		if i == len(c.Args) {
			c.Args = append(c.Args, o)
		} else {
			c.Args[i] = c.Args[i].union(o)
		}
	}
}

// agreement is the summary of a call that leads to one of several functions. What makes a finding must
// hold for all of them: waits, results, callbacks. What silences one need hold for one only: that it
// blocks, mutates, trains.
func agreement(fs []*Func) *Summary {
	s := fs[0].Summary
	s.Waits = slices.Clone(s.Waits)
	s.Barriers = slices.Clone(s.Barriers)
	s.Results = resultsOf(fs)
	s.Histories = nil
	for _, f := range fs[1:] {
		s.Waits = commonWaits(s.Waits, f.Summary.Waits)
		s.Barriers = commonWaits(s.Barriers, f.Summary.Barriers)
		s.Methods = nil
		s.Calls = slices.DeleteFunc(slices.Clone(s.Calls), func(c Callback) bool {
			d := f.Summary.callback(c.Operand)
			return d == nil || d.When != c.When
		})
		for i := range s.Calls {
			s.Calls[i].Timed = s.Calls[i].Timed && f.Summary.callback(s.Calls[i].Operand).Timed
			s.Calls[i].Rare = s.Calls[i].Rare && f.Summary.callback(s.Calls[i].Operand).Rare
			s.Calls[i].Slow = s.Calls[i].Slow || f.Summary.callback(s.Calls[i].Operand).Slow
			s.Calls[i].Args = commonOrigins(s.Calls[i].Args, f.Summary.callback(s.Calls[i].Operand).Args)
		}
		if s.Func != nil && (f.Summary.Func == nil || !s.Func.equal(f.Summary.Func)) {
			s.Func = nil
		}
		if !slices.EqualFunc(s.More, f.Summary.More, func(a, b Summary) bool { return a.equal(&b) }) {
			s.More = nil
		}
		if s.Prints != nil && (f.Summary.Prints == nil || *s.Prints != *f.Summary.Prints) {
			s.Prints = nil
		}
		s.Builds = s.Builds && f.Summary.Builds
		s.BuiltOf |= f.Summary.BuiltOf
		s.Makes = s.Makes && f.Summary.Makes
		s.Compares &= f.Summary.Compares
		s.Keeps &= f.Summary.Keeps
		s.Wraps &= f.Summary.Wraps
		s.Sums &= f.Summary.Sums
		s.Hoards &= f.Summary.Hoards
		s.Clocks &= f.Summary.Clocks
		s.Timer = s.Timer && f.Summary.Timer
		s.Blocks = s.Blocks || f.Summary.Blocks
		s.Enqueues = s.Enqueues && f.Summary.Enqueues
		s.Mutates = s.Mutates || f.Summary.Mutates
		s.Steps = s.Steps || f.Summary.Steps
		s.Trains = s.Trains || f.Summary.Trains
		s.Fits = s.Fits || f.Summary.Fits
		s.Repeats &= f.Summary.Repeats
	}
	return &s
}

// commonWaits returns the waits of two functions that both have. A wait for an operand is in both lists, or the other
// function waits for its own work: then it waits whatever the operand is. A wait of the result is in a loop, or
// guarded, if one of the two is.
func commonWaits(list, other []Wait) (common []Wait) {
	for _, pair := range [][2][]Wait{{list, other}, {other, list}} {
		for _, w := range pair[0] {
			v := waitOf(pair[1], w.Operand)
			if v == nil {
				v = waitOf(pair[1], Own)
			}
			if v == nil || waitOf(common, w.Operand) != nil {
				continue
			}
			w.InLoop, w.Guarded = w.InLoop || v.InLoop, w.Guarded || v.Guarded
			common = w.addTo(common)
		}
	}
	return common
}

// commonOrigins returns, for each result, what both lists say of its origin; nil if they differ in
// length.
func commonOrigins(list, other []Origin) []Origin {
	if len(list) != len(other) {
		return nil
	}
	common := slices.Clone(list)
	for i := range common {
		common[i].Pending = common[i].Pending && other[i].Pending
		common[i].From &= other[i].From
	}
	return common
}

// resultsOf says of each result of a call that leads to one of fs where its tensors come from. It is what those agree
// on that don't wait themselves: a loop that calls one of the others waits anyway.
func resultsOf(fs []*Func) []Origin {
	quiet := slices.DeleteFunc(slices.Clone(fs), func(f *Func) bool { return len(f.Summary.Waits) > 0 })
	if len(quiet) == 0 {
		quiet = fs
	}
	list := slices.Clone(quiet[0].Summary.Results)
	for _, f := range quiet[1:] {
		list = commonOrigins(list, f.Summary.Results)
	}
	return list
}

// waitOf returns the wait for an operand in a list, or nil.
func waitOf(list []Wait, operand int) *Wait {
	for i := range list {
		if list[i].Operand == operand {
			return &list[i]
		}
	}
	return nil
}

// withoutReceiver is the summary of a method value, whose receiver the call doesn't name.
func (s *Summary) withoutReceiver() *Summary {
	isOfReceiver := func(w Wait) bool { return w.Operand == tensorapi.Recv }
	t := *s
	t.Waits = slices.DeleteFunc(slices.Clone(s.Waits), isOfReceiver)
	t.Barriers = slices.DeleteFunc(slices.Clone(s.Barriers), isOfReceiver)
	return &t
}

// withFirst returns the summary of a method expression, such as (*T).M: the receiver is its first
// argument, so all operands have a number more. In a set of operands that is a shift by one.
func (s *Summary) withFirst() *Summary {
	t := *s
	t.Waits, t.Barriers = slices.Clone(s.Waits), slices.Clone(s.Barriers)
	for _, list := range [][]Wait{t.Waits, t.Barriers} {
		for i := range list {
			if list[i].Operand != Own {
				list[i].Operand++
			}
		}
	}
	t.Methods = slices.Clone(s.Methods)
	for i := range t.Methods {
		t.Methods[i].Operand++
	}
	t.Calls = slices.Clone(s.Calls)
	for i := range t.Calls {
		t.Calls[i].Operand++
		t.Calls[i].Args = firstOf(t.Calls[i].Args)
	}
	t.Results = firstOf(s.Results)
	t.Histories = slices.Clone(s.Histories)
	for i := range t.Histories {
		t.Histories[i].From <<= 1
	}
	t.Compares <<= 1
	t.Keeps <<= 1
	t.Wraps <<= 1
	t.Repeats <<= 1
	t.Sums <<= 1
	t.Hoards <<= 1
	t.BuiltOf <<= 1
	t.Clocks <<= 1
	t.Prints = nil
	return &t
}

// firstOf gives the operands in origins one number more, for withFirst.
func firstOf(list []Origin) []Origin {
	list = slices.Clone(list)
	for i := range list {
		list[i].From <<= 1
	}
	return list
}

// isZero reports whether the summary says nothing. BuiltOf alone says nothing: it is about what is
// built, if Builds holds.
func (s *Summary) isZero() bool {
	return len(s.Waits) == 0 && len(s.Methods) == 0 && len(s.Barriers) == 0 && s.Results == nil && !s.Makes && s.Compares == 0 && s.Histories == nil && s.Keeps == 0 && s.Sums == 0 && s.Hoards == 0 && len(s.Calls) == 0 && s.Func == nil && s.Wraps == 0 && s.Prints == nil && !s.Builds && s.Clocks == 0 && !s.Timer && !s.Blocks && !s.Enqueues && !s.Mutates && !s.Steps && !s.Trains && !s.Fits
}

// equal reports whether two summaries say the same. String writes all that they say, so it is what is
// compared.
func (s *Summary) equal(t *Summary) bool { return s.String() == t.String() }

// callback says when the function calls its operand with the given number; nil if it never does.
func (s *Summary) callback(operand int) *Callback {
	for i := range s.Calls {
		if s.Calls[i].Operand == operand {
			return &s.Calls[i]
		}
	}
	return nil
}

// addTo adds w to a list, which has one wait for each operand, sorted by operand. Of two waits for one
// operand, the one of lower rank stays. A wait whose chain is too long is not added.
func (w Wait) addTo(list []Wait) []Wait {
	if len(w.Chain) > maxChain {
		return list
	}
	i, found := slices.BinarySearchFunc(list, w.Operand, func(w Wait, op int) int { return cmp.Compare(w.Operand, op) })
	if !found {
		return slices.Insert(list, i, w)
	}
	if w.rank() < list[i].rank() {
		list[i] = w
	}
	return list
}

// rank orders the waits for one operand: less means more to a caller. First come waits that are neither
// rare nor in a loop of the function's own, then those in a loop, then the rare ones; among equals, a
// short chain comes before a long one.
func (w Wait) rank() int {
	r := len(w.Chain)
	if w.InLoop {
		r += 10
	}
	if w.Guarded {
		r += 100
	}
	return r
}

// addCall adds a callback to s, or merges it with the one for the same operand.
func (s *Summary) addCall(c Callback) {
	if !slices.ContainsFunc(c.Args, func(o Origin) bool { return o != Origin{} }) {
		c.Args = nil
	}
	i, found := slices.BinarySearchFunc(s.Calls, c.Operand, func(c Callback, op int) int { return cmp.Compare(c.Operand, op) })
	if found {
		s.Calls[i].with(c)
	} else {
		s.Calls = slices.Insert(s.Calls, i, c)
	}
}

// String writes the summary as tests and -debug=f show it: "waits(0 in loop: train.go:3 x.Item) enqueues".
func (s *Summary) String() string {
	var words []string
	words = append(words, waitNames("waits", s.Waits)...)
	words = append(words, waitNames("syncs", s.Barriers)...)
	for _, m := range s.Methods {
		words = append(words, waitNames("asks "+m.Name, []Wait{m.Wait})...)
	}
	if s.Results != nil {
		words = append(words, "returns("+originNames(s.Results)+")")
	}
	if s.Histories != nil {
		list := make([]Origin, len(s.Histories))
		for i, l := range s.Histories {
			list[i] = Origin{l.Yes, l.From}
		}
		words = append(words, "tracks("+strings.NewReplacer("pending", "yes", "host", "no").Replace(originNames(list))+")")
	}
	for _, kept := range []struct {
		of   Operands
		word string
	}{{s.Compares, "compares"}, {s.Keeps, "keeps"}, {s.Sums, "sums"}, {s.Hoards, "hoards"}, {s.Wraps, "wraps"}, {s.Repeats, "repeats"}} {
		if kept.of != 0 {
			words = append(words, kept.word+"("+Origin{From: kept.of}.String()+")")
		}
	}
	if s.Func != nil {
		words = append(words, "returns func{"+s.Func.String()+"}")
	}
	for i := range s.More {
		words = append(words, "and func{"+s.More[i].String()+"}")
	}
	if s.Prints != nil {
		word := "prints(" + operandName(s.Prints.First) + "..."
		if s.Prints.Format >= 0 {
			word += " by " + operandName(s.Prints.Format)
		}
		if s.Prints.JSON {
			word += " as JSON"
		}
		words = append(words, word+")")
	}
	for _, c := range s.Calls {
		word := "calls"
		if c.When == tensorapi.Loop {
			word = "loops"
		}
		if c.Timed {
			word = "times, " + word
		}
		if c.Slow {
			word = "passes, " + word
		}
		if c.Rare {
			word = "rarely " + word
		}
		word += "(" + operandName(c.Operand)
		if c.Args != nil {
			word += " with " + originNames(c.Args)
		}
		words = append(words, word+")")
	}
	if s.Builds {
		words = append(words, "builds("+Origin{From: s.BuiltOf}.String()+")")
	}
	if s.Clocks != 0 {
		words = append(words, "tells("+Origin{From: s.Clocks}.String()+")")
	}
	for _, p := range []struct {
		holds bool
		word  string
	}{{s.Makes, "makes"}, {s.Timer, "timer"}, {s.Blocks, "blocks"}, {s.Enqueues, "enqueues"}, {s.Mutates, "mutates"}, {s.Steps, "steps"}, {s.Trains, "trains"}, {s.Fits, "fits"}} {
		if p.holds {
			words = append(words, p.word)
		}
	}
	return strings.Join(words, " ")
}

// waitNames writes each wait of a list, after the given word: "waits(0 in loop: train.go:3 x.Item)".
func waitNames(word string, list []Wait) (words []string) {
	for _, w := range list {
		var b strings.Builder
		b.WriteString(word + "(" + operandName(w.Operand))
		if w.InLoop {
			b.WriteString(" in loop")
		}
		if w.Guarded {
			b.WriteString(" rarely")
		}
		sep := ": "
		for _, l := range w.Chain {
			b.WriteString(sep + l.Pos + " " + l.Call)
			sep = ", "
		}
		b.WriteString(")")
		words = append(words, b.String())
	}
	return words
}

// String writes the origin: "pending|0", "host".
func (o Origin) String() string {
	var words []string
	if o.Pending {
		words = append(words, "pending")
	}
	for i := tensorapi.Recv; i < 31; i++ {
		if o.From.Has(i) {
			words = append(words, operandName(i))
		}
	}
	if words == nil {
		return "host"
	}
	return strings.Join(words, "|")
}

// originNames writes the origins of several results.
func originNames(list []Origin) string {
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = o.String()
	}
	return strings.Join(names, ", ")
}

// operandName writes an operand: "recv", "own", "0".
func operandName(i int) string {
	switch i {
	case tensorapi.Recv:
		return "recv"
	case Own:
		return "own"
	}
	return strconv.Itoa(i)
}

// Reaches is the fact about a package that can name a tensor type, by its own imports or by those of
// packages it imports. A package without this fact is not analysed, so most packages of a program cost
// nothing.
type Reaches struct {
	Libraries []string // the names of their profiles, sorted
}

// AFact marks Reaches as a fact of package analysis.
func (*Reaches) AFact() {}

// String names the libraries.
func (r *Reaches) String() string { return "reaches " + strings.Join(r.Libraries, ", ") }
