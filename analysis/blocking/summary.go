package blocking

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// maxChain bounds how far a wait is followed from callee to caller. What lies
// deeper is rarely what the reader of a finding would call the loop's fault.
const maxChain = 3

// A Summary is the fact about one function: what a call of it does to the
// asynchrony of its caller. The zero Summary, which is not exported, is that
// of a function that has nothing to do with tensors.
//
// A Summary speaks of the function's operands: [tensorapi.Recv] is the
// receiver, 0 the first parameter.
type Summary struct {
	// Waits says what the function waits for to learn a value: at most one
	// wait for each operand, sorted by operand.
	Waits []Wait
	// Methods says, likewise, which methods the function calls of operands, or of their
	// elements, whose types its callers know: those of parameters that are of a type
	// parameter or an interface.
	Methods []Method
	// Barriers says, likewise, what the function waits for to know that it is done. A function that reads a clock has
	// none, as that is what it waits for.
	Barriers []Wait
	// Results says, for each result, where its tensors come from. It is nil
	// if none of them is known to be pending.
	Results []Origin
	// Histories says, for each result, whether it has a history. It is nil if none
	// is known to have one.
	Histories []Lineage
	// Keeps are the operands that the function puts into a list or map that outlives
	// the call.
	Keeps Operands
	// Sums are the operands that the function adds to a field of which only values are
	// read, and Hoards those that it puts into a list of which only values are read.
	Sums, Hoards Operands
	// Calls says when the function calls the functions it is given, sorted
	// by operand.
	Calls []Callback
	// Func is what is known of the function that it returns: an iterator, a
	// step function. It is nil if it returns none or not always the same; and
	// nothing is known of a function that that one returns.
	Func *Summary
	// Prints says which of its arguments the function has printed as they
	// are, as log.Printf does. It is nil for most functions.
	Prints *Printer
	// Builds reports whether each call builds or compiles a graph or plan, of what is
	// passed for the operands BuiltOf.
	Builds  bool
	BuiltOf Operands
	// Clocks are the operands that are times since which the function tells how
	// much has passed, without waiting for anything before.
	Clocks Operands
	// Timer reports whether the function tells, likewise, how much has passed since
	// the function was called that has made it.
	Timer bool
	// Blocks reports whether a call may wait for anything at all, in
	// whatever way, also where Waits is silent.
	Blocks bool
	// Enqueues reports whether a call may put work on the device's queue.
	Enqueues bool
	// Mutates reports whether a call may assign cells: train.
	Mutates bool
	// Steps reports whether a call may take a step of training.
	Steps bool
	// Trains reports whether the function trains in a loop of its own, so
	// that a loop around it is an outer, slow one.
	Trains bool
}

// AFact marks Summary as a fact of package analysis.
func (*Summary) AFact() {}

// A Wait is one thing that a function waits for.
type Wait struct {
	// Operand is the operand waited for, or Own.
	Operand int
	// InLoop reports whether it waits in a loop of its own, or before or after
	// one: a loop around the call adds little.
	InLoop bool
	// Guarded reports whether it waits only rarely: every hundredth call,
	// when something failed.
	Guarded bool
	// Chain leads from the function to the read: the calls on the way, then
	// the read. It has at least one link and at most three.
	Chain []Link
}

// A Method is a method that a function calls, and the wait that this is if that reads its receiver.
type Method struct {
	Wait
	Name string // the method's
}

// Own as the operand of a [Wait] means a tensor that the caller does not
// pass: one that the function makes, or one that a variable or field holds.
const Own = tensorapi.None

// A Link is one call of a chain.
type Link struct {
	Pos  string // "train.go:12"
	Call string // "loss.Item"
}

// An Origin says where the tensors that an expression stands for may come
// from. The zero Origin is that of host data, and of everything unknown.
type Origin struct {
	Pending bool     // an operation that was just enqueued
	From    Operands // what was passed for these operands
}

func (o Origin) union(p Origin) Origin {
	return Origin{o.Pending || p.Pending, o.From | p.From}
}

// Operands is a set of operands. The 32nd parameter and later ones are never
// members.
type Operands uint32

func operands(i int) Operands { return 1 << (i + 1) }

// Has reports whether operand i is in the set.
func (s Operands) Has(i int) bool { return s&operands(i) != 0 }

// A Callback says when a function calls the function that it is given.
type Callback struct {
	Operand int
	When    tensorapi.Calls
	// Timed reports whether a clock is read before and after a call, and nothing
	// waits in between.
	Timed bool
	// Slow reports whether each call comes after a pass over data, as at the end of
	// an epoch.
	Slow bool
	// Args says, for each argument of these calls, where its tensors come
	// from. It is nil if none of them is known.
	Args []Origin
}

// with adds what another call of the operand does.
func (c *Callback) with(d Callback) {
	if d.When == tensorapi.Loop {
		c.When = d.When
	}
	c.Timed = c.Timed || d.Timed
	c.Slow = c.Slow || d.Slow
	for i, o := range d.Args {
		if i == len(c.Args) {
			c.Args = append(c.Args, o)
		} else {
			c.Args[i] = c.Args[i].union(o)
		}
	}
}

// agreement is the summary of a call that leads to one of several functions:
// what is a finding if it holds must hold for all of them, what silences one
// need hold only for one.
func agreement(fs []*Func) *Summary {
	s := fs[0].Summary
	s.Waits = slices.Clone(s.Waits)
	s.Barriers = slices.Clone(s.Barriers)
	s.Results = slices.Clone(s.Results)
	s.Histories = nil
	for _, f := range fs[1:] {
		s.Waits = commonWaits(s.Waits, f.Summary.Waits)
		s.Barriers = commonWaits(s.Barriers, f.Summary.Barriers)
		s.Methods = nil
		s.Results = commonOrigins(s.Results, f.Summary.Results)
		s.Calls = slices.DeleteFunc(slices.Clone(s.Calls), func(c Callback) bool {
			d := f.Summary.callback(c.Operand)
			return d == nil || d.When != c.When
		})
		for i := range s.Calls {
			s.Calls[i].Timed = s.Calls[i].Timed && f.Summary.callback(s.Calls[i].Operand).Timed
			s.Calls[i].Slow = s.Calls[i].Slow || f.Summary.callback(s.Calls[i].Operand).Slow
			s.Calls[i].Args = commonOrigins(s.Calls[i].Args, f.Summary.callback(s.Calls[i].Operand).Args)
		}
		if s.Func != nil && (f.Summary.Func == nil || !s.Func.equal(f.Summary.Func)) {
			s.Func = nil
		}
		if s.Prints != nil && (f.Summary.Prints == nil || *s.Prints != *f.Summary.Prints) {
			s.Prints = nil
		}
		s.Builds = s.Builds && f.Summary.Builds
		s.BuiltOf |= f.Summary.BuiltOf
		s.Keeps &= f.Summary.Keeps
		s.Sums &= f.Summary.Sums
		s.Hoards &= f.Summary.Hoards
		s.Clocks &= f.Summary.Clocks
		s.Timer = s.Timer && f.Summary.Timer
		s.Blocks = s.Blocks || f.Summary.Blocks
		s.Enqueues = s.Enqueues && f.Summary.Enqueues
		s.Mutates = s.Mutates || f.Summary.Mutates
		s.Steps = s.Steps || f.Summary.Steps
		s.Trains = s.Trains || f.Summary.Trains
	}
	return &s
}

// commonWaits removes from a list what is not in the other.
func commonWaits(list, other []Wait) []Wait {
	list = slices.DeleteFunc(list, func(w Wait) bool { return waitOf(other, w.Operand) == nil })
	for i := range list {
		w := waitOf(other, list[i].Operand)
		list[i].InLoop = list[i].InLoop || w.InLoop
		list[i].Guarded = list[i].Guarded || w.Guarded
	}
	return list
}

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

// waitOf returns the wait for an operand in a list, or nil.
func waitOf(list []Wait, operand int) *Wait {
	for i := range list {
		if list[i].Operand == operand {
			return &list[i]
		}
	}
	return nil
}

// withFirst is the summary of the function that takes the receiver of s's as its first
// argument.
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
	t.Keeps <<= 1
	t.Sums <<= 1
	t.Hoards <<= 1
	t.BuiltOf <<= 1
	t.Clocks <<= 1
	t.Prints = nil
	return &t
}

func firstOf(list []Origin) []Origin {
	list = slices.Clone(list)
	for i := range list {
		list[i].From <<= 1
	}
	return list
}

func (s *Summary) isZero() bool {
	return len(s.Waits) == 0 && len(s.Methods) == 0 && len(s.Barriers) == 0 && s.Results == nil && s.Histories == nil && s.Keeps == 0 && s.Sums == 0 && s.Hoards == 0 && len(s.Calls) == 0 && s.Func == nil && s.Prints == nil && !s.Builds && s.Clocks == 0 && !s.Timer && !s.Blocks && !s.Enqueues && !s.Mutates && !s.Steps && !s.Trains
}

func (s *Summary) equal(t *Summary) bool { return s.String() == t.String() }

// callback says when the function calls its operand; nil: never.
func (s *Summary) callback(operand int) *Callback {
	for i := range s.Calls {
		if s.Calls[i].Operand == operand {
			return &s.Calls[i]
		}
	}
	return nil
}

// addTo records a wait in a list of a summary, if it says more than what is already
// known of the same operand: a wait that matters to the caller beats one that does
// not, then the shorter chain wins.
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

// String is what tests and -debug=f show: "waits(0 in loop: train.go:3 x.Item) enqueues".
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
	}{{s.Keeps, "keeps"}, {s.Sums, "sums"}, {s.Hoards, "hoards"}} {
		if kept.of != 0 {
			words = append(words, kept.word+"("+Origin{From: kept.of}.String()+")")
		}
	}
	if s.Func != nil {
		words = append(words, "returns func{"+s.Func.String()+"}")
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
	}{{s.Timer, "timer"}, {s.Blocks, "blocks"}, {s.Enqueues, "enqueues"}, {s.Mutates, "mutates"}, {s.Steps, "steps"}, {s.Trains, "trains"}} {
		if p.holds {
			words = append(words, p.word)
		}
	}
	return strings.Join(words, " ")
}

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

func originNames(list []Origin) string {
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = o.String()
	}
	return strings.Join(names, ", ")
}

func operandName(i int) string {
	switch i {
	case tensorapi.Recv:
		return "recv"
	case Own:
		return "own"
	}
	return strconv.Itoa(i)
}

// Reaches is the fact about a package that can name a tensor, through
// whatever chain of imports. Packages without it are not analysed.
type Reaches struct {
	Libraries []string // the names of their profiles, sorted
}

// AFact marks Reaches as a fact of package analysis.
func (*Reaches) AFact() {}

func (r *Reaches) String() string { return "reaches " + strings.Join(r.Libraries, ", ") }
