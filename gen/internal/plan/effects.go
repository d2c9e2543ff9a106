package plan

import (
	"go/token"
	"go/types"
	"maps"
)

// A Cause is a place in the source and what about it matters.
type Cause struct {
	Pos  token.Pos
	Text string // completes "because it …": "calls os.Rename, whose effects are unknown"
	Code Code   // what a refusal for this cause is called; "" if that depends
	In   *Cause // why a function that is called can't be divided: see [Analysis.Lift]
	Hint string // what to write instead, if that depends on more than the code
}

// Effects is what executing a piece of code does, as far as its order among
// other pieces matters.
type Effects struct {
	Reads, Writes locSet

	// Variables of which the memory, that nothing else has led to, is led to by others from now on.
	Hands map[types.Object]Cause

	// The first cause of each, or none:
	Enqueues *Cause // puts work on a device's queue
	Waits    *Cause // waits for the device, in a way that can't be put off
	Barrier  *Cause // must find everything before it done: may block on the outside, or is unknown
	Clock    *Cause // reads the clock
	Polls    *Cause // looks at what others change: asks a context whether it is done
	Stamps   *Cause // writes the time of the call: log.Print
	HandsOut *Cause // contains a function literal that something may call later
	Formats  *Cause // makes text of what its last parameter holds; that is no part of the effects
	Unsafe   *Cause // uses package unsafe
	Ends     *Cause // may end the function, the goroutine or the process: panic, log.Fatal
}

func (e *Effects) read(l Loc, c Cause) {
	if e.Reads == nil {
		e.Reads = make(locSet)
	}
	e.Reads.add(l, c)
}

func (e *Effects) write(l Loc, c Cause) {
	if e.Writes == nil {
		e.Writes = make(locSet)
	}
	e.Writes.add(l, c)
}

// note sets a cause unless there is an earlier one.
func note(at **Cause, c Cause) {
	if *at == nil {
		*at = &c
	}
}

// FirstOf returns the first of causes that is not nil, or nil.
func FirstOf(causes ...*Cause) *Cause {
	for _, c := range causes {
		if c != nil {
			return c
		}
	}
	return nil
}

// add merges what o does into e.
func (e *Effects) add(o *Effects) {
	for l, c := range o.Reads {
		e.read(l, c)
	}
	for l, c := range o.Writes {
		e.write(l, c)
	}
	for v, c := range o.Hands {
		e.hand(v, c)
	}
	e.addFlags(o)
}

func (e *Effects) hand(v types.Object, c Cause) {
	if e.Hands == nil {
		e.Hands = make(map[types.Object]Cause)
	}
	if _, ok := e.Hands[v]; !ok {
		e.Hands[v] = c
	}
}

func (e *Effects) addFlags(o *Effects) {
	for _, f := range []struct{ to, from **Cause }{
		{&e.Enqueues, &o.Enqueues}, {&e.Waits, &o.Waits}, {&e.Barrier, &o.Barrier}, {&e.Clock, &o.Clock},
		{&e.Polls, &o.Polls}, {&e.Stamps, &o.Stamps}, {&e.HandsOut, &o.HandsOut}, {&e.Unsafe, &o.Unsafe}, {&e.Ends, &o.Ends}, {&e.Formats, &o.Formats},
	} {
		if *f.from != nil {
			note(f.to, **f.from)
		}
	}
}

// addCall merges what a callee does, told from its call.
func (e *Effects) addCall(callee *Effects, pos token.Pos, name string) {
	through := func(c Cause) Cause {
		if c.Code == OnlyNow {
			c.Code = WaitsInside
		}
		return Cause{Pos: pos, Text: "calls " + name + ", which " + c.Text, Code: c.Code, In: c.In, Hint: c.Hint}
	}
	for l, c := range callee.Reads {
		e.read(l, through(c))
	}
	for l, c := range callee.Writes {
		e.write(l, through(c))
	}
	for _, f := range []struct{ to, from **Cause }{
		{&e.Enqueues, &callee.Enqueues}, {&e.Waits, &callee.Waits}, {&e.Barrier, &callee.Barrier}, {&e.Clock, &callee.Clock},
		{&e.Polls, &callee.Polls}, {&e.Stamps, &callee.Stamps}, {&e.HandsOut, &callee.HandsOut}, {&e.Unsafe, &callee.Unsafe}, {&e.Ends, &callee.Ends},
	} {
		if *f.from != nil {
			note(f.to, through(**f.from))
		}
	}
}

// outside returns what of e a caller can tell: without its local variables.
func (e *Effects) outside(isLocal func(Loc) bool) *Effects {
	out := *e
	out.Reads, out.Writes, out.Hands = maps.Clone(e.Reads), maps.Clone(e.Writes), nil
	local := func(l Loc, _ Cause) bool { return isLocal(l) }
	maps.DeleteFunc(out.Reads, local)
	maps.DeleteFunc(out.Writes, local)
	return &out
}

// A Conflict is a reason why two pieces of code may not change places.
type Conflict struct {
	First, Second Loc
	Kind          Dependence
	Why           Cause // in the second piece
}

// A Dependence says how the second of two pieces depends on the first.
type Dependence uint8

const (
	Flow   Dependence = iota // the second reads what the first writes
	Output                   // both write
	Anti                     // the second writes what the first reads
)

// Independent reports whether it does not matter which of two pieces of code runs first, as far as
// what they read and write goes.
func Independent(a, b *Effects) bool { return len(conflicts(a, b)) == 0 }

// conflicts lists the ways in which second depends on first. Order and
// control are the caller's business.
func conflicts(first, second *Effects) (found []Conflict) {
	pairs := func(kind Dependence, a, b locSet) {
		for la := range a {
			for lb, c := range b {
				if overlap(la, lb) {
					found = append(found, Conflict{la, lb, kind, c})
				}
			}
		}
	}
	for v, c := range second.Hands { // others may change it from then on
		if l := (Loc{Kind: Own, Obj: v}); first.Reads.has(l) {
			found = append(found, Conflict{l, l, Anti, c})
		}
	}
	pairs(Flow, first.Writes, second.Reads)
	pairs(Output, first.Writes, second.Writes)
	pairs(Anti, first.Reads, second.Writes)
	return found
}
