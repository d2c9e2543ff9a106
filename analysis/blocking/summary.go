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
	// Results says, for each result, where its tensors come from. It is nil
	// if none of them is known to be pending.
	Results []Origin
	// Calls says when the function calls the functions it is given, sorted
	// by operand.
	Calls []Callback
	// Blocks reports whether a call may wait for anything at all, in
	// whatever way, also where Waits is silent.
	Blocks bool
	// Enqueues reports whether a call may put work on the device's queue.
	Enqueues bool
	// Mutates reports whether a call may assign cells: train.
	Mutates bool
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
	// InLoop reports whether it waits in a loop of its own, or after one:
	// a loop around the call adds little.
	InLoop bool
	// Guarded reports whether it waits only rarely: every hundredth call,
	// when something failed.
	Guarded bool
	// Chain leads from the function to the read: the calls on the way, then
	// the read. It has at least one link and at most three.
	Chain []Link
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
}

// agreement is the summary of a call that leads to one of several functions:
// what is a finding if it holds must hold for all of them, what silences one
// need hold only for one.
func agreement(fs []*Func) *Summary {
	s := fs[0].sum
	s.Waits = slices.Clone(s.Waits)
	s.Results = slices.Clone(s.Results)
	for _, f := range fs[1:] {
		s.Waits = slices.DeleteFunc(s.Waits, func(w Wait) bool { return f.sum.wait(w.Operand) == nil })
		for i := range s.Waits {
			w := f.sum.wait(s.Waits[i].Operand)
			s.Waits[i].InLoop = s.Waits[i].InLoop || w.InLoop
			s.Waits[i].Guarded = s.Waits[i].Guarded || w.Guarded
		}
		if f.sum.Results == nil {
			s.Results = nil
		}
		for i := range s.Results {
			s.Results[i].Pending = s.Results[i].Pending && f.sum.Results[i].Pending
			s.Results[i].From &= f.sum.Results[i].From
		}
		s.Calls = slices.DeleteFunc(slices.Clone(s.Calls), func(c Callback) bool { return f.sum.calls(c.Operand) != c.When })
		s.Blocks = s.Blocks || f.sum.Blocks
		s.Enqueues = s.Enqueues && f.sum.Enqueues
		s.Mutates = s.Mutates || f.sum.Mutates
		s.Trains = s.Trains || f.sum.Trains
	}
	return &s
}

// wait returns the wait for an operand, or nil.
func (s *Summary) wait(operand int) *Wait {
	for i := range s.Waits {
		if s.Waits[i].Operand == operand {
			return &s.Waits[i]
		}
	}
	return nil
}

func (s *Summary) isZero() bool {
	return len(s.Waits) == 0 && s.Results == nil && len(s.Calls) == 0 && !s.Blocks && !s.Enqueues && !s.Mutates && !s.Trains
}

func (s *Summary) equal(t *Summary) bool { return s.String() == t.String() }

// calls returns when the function calls its operand.
func (s *Summary) calls(operand int) tensorapi.Calls {
	for _, c := range s.Calls {
		if c.Operand == operand {
			return c.When
		}
	}
	return tensorapi.Never
}

// add records a wait, if it says more than what is already known of the same
// operand: a wait that matters to the caller beats one that does not, then
// the shorter chain wins.
func (s *Summary) add(w Wait) {
	s.Blocks = true
	if len(w.Chain) > maxChain {
		return
	}
	i, found := slices.BinarySearchFunc(s.Waits, w.Operand, func(w Wait, op int) int { return cmp.Compare(w.Operand, op) })
	if !found {
		s.Waits = slices.Insert(s.Waits, i, w)
		return
	}
	if w.rank() < s.Waits[i].rank() {
		s.Waits[i] = w
	}
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

func (s *Summary) addCall(operand int, when tensorapi.Calls) {
	i, found := slices.BinarySearchFunc(s.Calls, operand, func(c Callback, op int) int { return cmp.Compare(c.Operand, op) })
	if !found {
		s.Calls = slices.Insert(s.Calls, i, Callback{operand, when})
	} else if s.Calls[i].When == tensorapi.Once {
		s.Calls[i].When = when
	}
}

// String is what tests and -debug=f show: "waits(0 in loop: train.go:3 x.Item) enqueues".
func (s *Summary) String() string {
	var words []string
	for _, w := range s.Waits {
		var b strings.Builder
		b.WriteString("waits(" + operandName(w.Operand))
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
	if s.Results != nil {
		var results []string
		for _, o := range s.Results {
			results = append(results, o.String())
		}
		words = append(words, "returns("+strings.Join(results, ", ")+")")
	}
	for _, c := range s.Calls {
		word := "calls"
		if c.When == tensorapi.Loop {
			word = "loops"
		}
		words = append(words, word+"("+operandName(c.Operand)+")")
	}
	for _, p := range []struct {
		holds bool
		word  string
	}{{s.Blocks, "blocks"}, {s.Enqueues, "enqueues"}, {s.Mutates, "mutates"}, {s.Trains, "trains"}} {
		if p.holds {
			words = append(words, p.word)
		}
	}
	return strings.Join(words, " ")
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
type Reaches struct{}

// AFact marks Reaches as a fact of package analysis.
func (*Reaches) AFact() {}

func (*Reaches) String() string { return "reaches tensors" }
