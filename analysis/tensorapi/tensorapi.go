// Package tensorapi describes tensor libraries as data, for the analyzers and the generator. It says of each
// function whether it enqueues work, waits (and for what), or only looks at metadata.
//
// A library is described by a [Profile]. Its own code is never analysed: what
// a library function does to its caller is what its profile says, and nothing
// else. The package imports no tensor library; functions and types are matched
// by import path and name.
//
//	fn := typeutil.Callee(info, call)
//	if f, ok := tensorapi.Ours().Lookup(fn); ok && f.Kind == tensorapi.Read {
//		// call waits for its operand f.Arg
//	}
package tensorapi

import (
	"fmt"
	"go/types"
)

// A Kind says what a call does, as far as the order and the time of things
// depend on it. Every function has exactly one.
type Kind uint8

// The kinds, from the harmless to the blocking.
const (
	// Unknown is the zero Kind. No function of a profile has it.
	Unknown Kind = iota
	// Pure functions compute on the host alone, from their arguments alone,
	// and neither enqueue nor wait: constructors of layers, of generators.
	Pure
	// Meta functions tell what is known when an operation is enqueued: shape,
	// dtype, device, the list of parameters. They never wait.
	Meta
	// Poll functions tell how far the device has got: Ready, Stats. They
	// never wait, and what they return depends on time.
	Poll
	// Control functions set something of the runtime: limits, modes. Others deal with the world and
	// wait for no tensor: they read files. Their place in the order of all effects is fixed.
	Control
	// Output functions show or record what they are given, tensors too, when it is known. They write to
	// the outside in the order of their calls, keep a handle of their own, and wait for nothing but room
	// for it.
	Output
	// Host functions make a tensor of host data or of a formula alone. It
	// depends on no other tensor, so nobody waits long for it: what they
	// return is never called pending, although filling it may be enqueued.
	Host
	// View functions return a tensor that shares the storage of operand Arg.
	// They are pending if and only if that operand is.
	View
	// Op functions enqueue work and return tensors that are pending. One with an
	// operand Arg may also change cells of that operand and draw from generators:
	// Forward of a module, which in training may count or drop something.
	Op
	// Draw functions are Op functions that also advance a random generator:
	// the operand Arg, or with Arg None the default one.
	Draw
	// Value functions return the tensor that the cell Arg holds now. Cells
	// are assigned results of operations, so it is pending.
	Value
	// Mutate functions enqueue work and assign cells: the cells of operand Arg, or
	// with Arg None cells that the call does not name. Examples are Minimize, Step,
	// ZeroGrad, Backward, Set.
	Mutate
	// InPlace functions enqueue work that changes operand Arg, a tensor, and
	// may return it. Ours has none.
	InPlace
	// Read functions wait for operand Arg and return its value, or give it to
	// a function that they are given.
	Read
	// Transfer functions wait for operand Arg and return it, or leave it, as a
	// tensor in the memory of the host. Ours has none.
	Transfer
	// Save functions wait for operand Arg, a tensor or what holds tensors, and write it out of the
	// process. They return nothing of it, and what they do can be neither put off nor left out.
	Save
	// Print functions wait for operand Arg to format it. Package fmt and the
	// loggers find and call them.
	Print
	// Wait functions wait for operand Arg and return no value of it.
	Wait
	// WaitAll functions wait for more than one operand: for all that was
	// enqueued, for a device, for a backlog.
	WaitAll
	// Call functions call a function that they are given, the operand Arg;
	// Calls says when.
	Call
)

var kinds = [...]string{
	Unknown:  "unknown",
	Pure:     "pure",
	Meta:     "meta",
	Poll:     "poll",
	Control:  "control",
	Output:   "output",
	Host:     "host",
	View:     "view",
	Op:       "op",
	Draw:     "draw",
	Value:    "value",
	Mutate:   "mutate",
	InPlace:  "inplace",
	Read:     "read",
	Transfer: "transfer",
	Save:     "save",
	Print:    "print",
	Wait:     "wait",
	WaitAll:  "waitall",
	Call:     "call",
}

// String is the word that directives and profiles use: "read".
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kinds[k]
}

// ParseKind is the inverse of [Kind.String] for the kinds that a function can
// have. The directive //asyncgen:api, which says the kind of a function of the
// library, uses the same words.
func ParseKind(s string) (Kind, bool) {
	for k := Pure; int(k) < len(kinds); k++ {
		if kinds[k] == s {
			return k, true
		}
	}
	return Unknown, false
}

// A Calls says when a function of kind [Call] calls the function it is given.
type Calls uint8

const (
	Never Calls = iota // the zero value, of all other kinds
	Once               // once, before the call returns
	Loop               // any number of times, before the call returns
	Later              // possibly after the call has returned, on the same goroutine
)

// The operands that are not parameters, as values of [Func.Arg].
const (
	Recv = -1 // the receiver
	None = -2 // no operand in particular
)

// A Func is what a profile says about one function or method.
type Func struct {
	// Name is the FullName of the function's origin:
	// "(*example.com/tensor.Tensor).Item", "example.com/tensor.ItemOf".
	// Methods of interfaces are functions too: "(example.com/nn.Module).Forward".
	Name string
	Kind Kind
	// Arg is the operand that Kind speaks of: Recv, None or the index of a
	// parameter. A variadic parameter is one operand.
	Arg int
	// Calls says when the function that the kind Call speaks of is called. For
	// other kinds it says so of the functions that are passed, whichever
	// parameter they are for.
	Calls Calls
	// Batch says whether calls for each example of a batch can be one call for all.
	Batch Batch
	// F64 is the name of the method that does the same with a number that the device
	// may still be computing: it takes one in place of a float64, or it returns one
	// in place of waiting for a float64. Empty: there is none.
	F64 string
	// Index is the name of the method that takes an int64 tensor of one element in
	// place of an index. Empty: there is none.
	Index string
}

// A Batch says what becomes of calls for each row of a tensor when they are one
// call in a VMap over the rows.
type Batch uint8

const (
	Alone        Batch = iota // the zero value: there is no such call
	Batched                   // each row gets the bits that it gets alone
	BatchedFails              // so, too, but values can make the call fail, and then for all rows
)

// IsElementwise reports whether each element of the result is computed from the elements at the same place of the
// operands, so that several such calls can be computed together.
func (f Func) IsElementwise() bool { return elementwise[f.Name] }

// Enqueues reports whether a call puts work on the device's queue that a
// later read may have to wait for. Such a call, and one of the kind Host, may
// have to wait for room when a bound on what is in flight is reached; that is
// not called waiting, as the device is busy then.
func (f Func) Enqueues() bool {
	return f.Kind == Op || f.Kind == Draw || f.Kind == Mutate || f.Kind == InPlace
}

// Waits reports whether a call waits until work is finished. It waits for operand [Func.Arg]; a call of the
// kind WaitAll waits for all work.
func (f Func) Waits() bool {
	return f.Kind == Read || f.Kind == Transfer || f.Kind == Save || f.Kind == Print || f.Kind == Wait || f.Kind == WaitAll
}

// CallsArg returns when a call calls the function that is passed as argument i.
func (f Func) CallsArg(i int) Calls {
	if f.Kind == Call && f.Arg != i {
		return Never
	}
	return f.Calls
}

// A Level says how much of a library is asynchronous.
type Level uint8

const (
	Sync  Level = iota // calls return when the work is done, and a read costs a copy in memory at most
	OnGPU              // reads wait for accelerators only
	Async              // asynchronous everywhere
)

// Ours is the profile of this module's runtime.
func Ours() *Profile { return ours }

var ours = &Profile{
	Name:     "asyncgen",
	Packages: []string{module + "/runtime/...", module + "/device/..."},
	Types:    []string{module + "/runtime/tensor.Tensor"},
	Cells: []string{
		module + "/runtime/tensor.Buffer",
		module + "/runtime/tensor.Cell",
		module + "/runtime/tensor.Generator",
		module + "/runtime/tensor.Param",
	},
	Funcs:    index(api),
	Rebuilds: map[string]bool{module + "/runtime/tensor.Fuse": true, module + "/runtime/tensor.FuseScalars": true},
	Values:   true,
	Async:    Async,
}

// IsDevice reports whether t is the type of our devices. What a device is doesn't change.
func IsDevice(t types.Type) bool { return named(t, []string{module + "/device.Device"}) }

// Joins reports whether fn, a function of ours, copies all of the tensors it is given into one.
func Joins(fn *types.Func) bool {
	return fn != nil && fn.FullName() == module+"/runtime/tensor.Concat"
}

const module = "github.com/asyncgen/asyncgen"

func index(fs []Func) map[string]Func {
	m := make(map[string]Func, len(fs))
	for _, f := range fs {
		m[f.Name] = f
	}
	return m
}
