package plan

import (
	"encoding"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Code identifies a kind of remark: AG1xx for what was done, AG2xx for what
// was refused, AG3xx for what is no candidate, AG9xx for what should not
// happen.
type Code string

// The codes. Package gen explains each of them with examples.
const (
	DeferredRead     Code = "AG101"
	DeferredSum      Code = "AG102"
	DeferredStore    Code = "AG103"
	DeferredPrint    Code = "AG104"
	DeferredGuarded  Code = "AG105"
	ReadTogether     Code = "AG108"
	StaysThere       Code = "AG109"
	LaterStamp       Code = "AG110"
	LaterClock       Code = "AG111"
	LaterPoll        Code = "AG112"
	ComputedTogether Code = "AG115"
	Bounded          Code = "AG116"
	LiftedRead       Code = "AG118"
	KeptTogether     Code = "AG119"
	RunsPast         Code = "AG120"
	ChosenThere      Code = "AG121"
	GivesBack        Code = "AG122"
	PlainForm        Code = "AG123"
	Fused            Code = "AG124"

	FeedsDevice    Code = "AG201"
	DecidesExit    Code = "AG202"
	DecidesDevice  Code = "AG203"
	UnknownEffects Code = "AG204"
	Blocks         Code = "AG205"
	SharedMemory   Code = "AG206"
	OnlyNow        Code = "AG207"
	WaitsInside    Code = "AG208"
	DeferInLoop    Code = "AG209"
	Timing         Code = "AG210"
	Jumps          Code = "AG211"
	ReadsCell      Code = "AG212"
	SwitchedOff    Code = "AG213"
	Entangled      Code = "AG214"
	LoopHeader     Code = "AG215"
	Exempt         Code = "AG216"
	Hidden         Code = "AG217"
	InTest         Code = "AG218"
	Unchecked      Code = "AG219"
	NoNumber       Code = "AG221"
	OneRounding    Code = "AG222"
	PastFails      Code = "AG230"
	PastCells      Code = "AG231"
	PastMemory     Code = "AG232"
	PastRandom     Code = "AG233"
	ExitForm       Code = "AG234"

	NoRead Code = "AG301"

	Diverged Code = "AG901"
)

// A Verdict says what became of a candidate.
type Verdict uint8

// The verdicts.
const (
	Applied Verdict = iota
	Refused
	Skipped
)

var verdicts = [...]string{"applied", "refused", "skipped"}

// String is the word that messages use.
func (v Verdict) String() string { return verdicts[v] }

// MarshalText makes JSON show the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

var _ encoding.TextMarshaler = Verdict(0)

// A Class says who can do something about a refusal.
type Class string

// The classes.
const (
	UserFixable     Class = "user-fixable"     // the loop can be written in another way
	NeedsAnnotation Class = "needs-annotation" // or it can be said what a function does
	NotYet          Class = "not-yet"          // the generator may learn it
	Fundamental     Class = "fundamental"      // what the loop says, no order but its own keeps
	Mistake         Class = "mistake"          // of asyncgen
)

var classes = map[Code]Class{
	FeedsDevice:    NotYet,
	DecidesExit:    NotYet,
	DecidesDevice:  NotYet,
	UnknownEffects: NeedsAnnotation,
	Blocks:         Fundamental,
	SharedMemory:   UserFixable,
	OnlyNow:        UserFixable,
	WaitsInside:    UserFixable,
	DeferInLoop:    UserFixable,
	Timing:         Fundamental,
	Jumps:          UserFixable,
	ReadsCell:      UserFixable,
	SwitchedOff:    UserFixable,
	Entangled:      UserFixable,
	LoopHeader:     NotYet,
	Exempt:         UserFixable,
	PastFails:      UserFixable,
	PastCells:      UserFixable,
	PastMemory:     UserFixable,
	PastRandom:     UserFixable,
	ExitForm:       UserFixable,
	Hidden:         UserFixable,
	InTest:         UserFixable,
	Unchecked:      UserFixable,
	NoNumber:       UserFixable,
	OneRounding:    UserFixable,
	Diverged:       Mistake,
}

// Class returns the class of refusals with the code c, or "" if c is not one of a refusal.
func (c Code) Class() Class { return classes[c] }

// titles say in a few words what a refusal is about.
var titles = map[Code]string{
	FeedsDevice:    "its value goes back to the device",
	DecidesExit:    "its value decides whether the loop goes on",
	DecidesDevice:  "its value decides what the device does",
	UnknownEffects: "something in the loop has unknown effects",
	Blocks:         "something in the loop may wait for the outside",
	SharedMemory:   "running ahead would show in memory that others can see",
	OnlyNow:        "it can't be put off in this form",
	WaitsInside:    "the wait is inside a function that is called",
	DeferInLoop:    "the loop defers calls",
	Timing:         "the loop measures time",
	Jumps:          "the function uses goto",
	ReadsCell:      "it uses a parameter that the loop changes",
	SwitchedOff:    "the rewrite is switched off",
	Entangled:      "the tensor is computed in the middle of it",
	LoopHeader:     "the loop itself depends on its value",
	PastFails:      "past the end of the loop, something may fail",
	PastCells:      "the loop changes cells that can't be given back",
	PastMemory:     "the loop changes memory that can't be given back",
	PastRandom:     "the loop draws random numbers on the host",
	ExitForm:       "the way out of the loop has a form that can't be moved",
	Hidden:         "it declares a variable that can't be declared before",
	NoNumber:       "the device has no form of that",
	OneRounding:    "it may be rounded otherwise on another platform",
	Exempt:         "strict forbids a difference in time",
}

// Title says in a few words what a refusal with the code c is about.
func (c Code) Title() string { return titles[c] }

// A Rewrite is one kind of change to a loop.
type Rewrite struct {
	Name string // as in off=defer-sum
	Was  string // what it was called before it had a name
	Code Code   // of the remark when it was made
	Does string // completes "loss.Item() …" in that remark
}

// Made returns the remark that r was made at a place in f. The remark begins with what.
func (r *Rewrite) Made(f *Function, pos token.Pos, what string) Remark {
	return Remark{Code: r.Code, Rule: r.Name, Verdict: Applied, Pos: f.Position(pos), Function: f.Decl.Name.Name, Message: what + " " + r.Does}
}

// A Remark tells what was done with one read or one loop, and why.
type Remark struct {
	Code     Code           `json:"code"`
	Rule     string         `json:"rule,omitempty"` // the rewrite: "defer-sum"
	Verdict  Verdict        `json:"verdict"`
	Class    Class          `json:"class,omitempty"` // of what is refused
	Pos      token.Position `json:"pos"`
	Function string         `json:"function"`
	Message  string         `json:"message"`
	Because  []Related      `json:"because,omitempty"`
	Hint     string         `json:"hint,omitempty"`
}

// Related is one step of an explanation.
type Related struct {
	Pos  token.Position `json:"pos"`
	Text string         `json:"text"`
}

// String formats r over several lines, with paths relative to the folder dir.
func (r Remark) String() string { return r.Format("") }

// Format is String with paths relative to the folder dir, if it is not empty.
func (r Remark) Format(dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s", place(dir, r.Pos), r.Code, r.Verdict)
	if r.Rule != "" {
		fmt.Fprintf(&b, " %s", r.Rule)
	}
	fmt.Fprintf(&b, ": %s", tensorapi.Visible(r.Message))
	for _, why := range r.Because {
		fmt.Fprintf(&b, "\n\t%s: %s", place(dir, why.Pos), tensorapi.Visible(why.Text))
	}
	if r.Hint != "" {
		fmt.Fprintf(&b, "\n\thint: %s", tensorapi.Visible(r.Hint))
	}
	return b.String()
}

func place(dir string, pos token.Position) string {
	if dir != "" {
		if rel, err := filepath.Rel(dir, pos.Filename); err == nil && !strings.HasPrefix(rel, "..") {
			pos.Filename = rel
		}
	}
	return tensorapi.Visible(pos.String())
}

// SortRemarks sorts by file, line, column and code, and drops repetitions.
func SortRemarks(rs []Remark) []Remark {
	key := func(r Remark) string {
		return fmt.Sprintf("%s:%08d:%05d:%s:%s", r.Pos.Filename, r.Pos.Line, r.Pos.Column, r.Code, r.Message)
	}
	slices.SortStableFunc(rs, func(a, b Remark) int { return strings.Compare(key(a), key(b)) })
	return slices.CompactFunc(rs, func(a, b Remark) bool { return key(a) == key(b) })
}

// A Reason is why one statement can't be put off, or can't run ahead.
type Reason struct {
	Code Code
	Cause
	Hint string
}

// ReasonOf turns a cause into a reason: of the code otherwise, if the cause has none.
func ReasonOf(c Cause, otherwise Code) Reason {
	r := Reason{Code: c.Code, Cause: c}
	if r.Code == "" {
		r.Code = otherwise
	}
	switch {
	case c.In != nil && c.In.Hint != "":
		r.Hint = c.In.Hint
	case c.Hint != "":
		r.Hint = c.Hint
	case r.Code == UnknownEffects:
		r.Hint = "move the call out of the loop, or say what the function does with //asyncgen:pure or //asyncgen:effects"
	case r.Code == Blocks:
		r.Hint = rarely
	case r.Code == WaitsInside:
		r.Hint = "let the function return the tensor, and read it in the loop"
	case r.Code == OnlyNow:
		r.Hint = "read it with Item, At, Float32s or their like, or print the tensor itself"
	}
	return r
}
