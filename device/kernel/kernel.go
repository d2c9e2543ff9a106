// Package kernel defines what kernels compute: scalar expressions built from primitives, reductions
// and random numbers. Each has one meaning, down to the last bit, and every backend follows it.
//
// An element-wise operation is an expression over its operands:
//
//	x, y := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32)
//	body := kernel.Mul(kernel.Tanh(x), y)
//	k := device.NewKernel("gate", device.Map, body, device.Float32, device.Float32, device.Float32)
//
// Its derivative is an expression too ([Diff]), and so is a composition of expressions. So fusion and
// differentiation need no mechanism of their own.
//
// The package knows no tensors, no loops over them and no devices: backends bring those.
// [Expr.Eval], [Fold] and [Draw] are the definitions, written to be read. A backend may compute the
// same in any way that gives the same bits. The exception are the primitives that are not correctly
// rounded (exp, log, tanh and the like). There a device may be up to 2 ulp off the exact value; the
// CPU has the bits that are defined here.
//
// # Numbers
//
// Every primitive rounds its result to its type: a product that is added to
// something is rounded first, never contracted into a fused multiply-add.
// Integers wrap around. NaN propagates through Max and Min, and -0 < +0 there.
package kernel

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/device"
)

// An Expr is a typed scalar expression, a node of an immutable acyclic graph.
// Equal expressions are the same pointer, so a shared subexpression is computed
// once and comparing expressions is comparing pointers. Like kernels,
// expressions are never freed.
type Expr struct {
	kind  Kind
	prim  Prim // of an Application
	dtype device.DType
	bits  uint64   // a Constant's value, or the index of an Operand or Immediate
	in    [3]*Expr // an Application's operands
}

// A Kind tells what an Expr is.
type Kind uint8

const (
	Operand     Kind = iota // an element of an input of the command
	Immediate               // an immediate of the command
	Constant                // a value known when the expression was built
	Application             // a primitive applied to expressions
)

var interned struct {
	sync.Mutex
	nodes map[Expr]*Expr
}

func intern(n Expr) *Expr {
	interned.Lock()
	defer interned.Unlock()
	if e, ok := interned.nodes[n]; ok {
		return e
	}
	if interned.nodes == nil {
		interned.nodes = map[Expr]*Expr{}
	}
	e := &n
	interned.nodes[n] = e
	return e
}

// Arg is the element of the i-th input, which has type dt.
func Arg(i int, dt device.DType) *Expr {
	if i < 0 || i >= device.MaxInputs {
		panic(fmt.Sprintf("kernel: operand %d: a command has %d inputs", i, device.MaxInputs))
	}
	return intern(Expr{kind: Operand, dtype: dt, bits: uint64(i)})
}

// Imm is the i-th immediate of the command, Command.Immediate(i), read as the [Bits] of a value of type dt.
func Imm(i int, dt device.DType) *Expr {
	if i < 0 || i >= device.MaxImms {
		panic(fmt.Sprintf("kernel: immediate %d: a command has %d", i, device.MaxImms))
	}
	return intern(Expr{kind: Immediate, dtype: dt, bits: uint64(i)})
}

// Const is v converted to dt, as Cast converts.
func Const(v float64, dt device.DType) *Expr { return constant(BitsOf(v, dt), dt) }

func constant(bits uint64, dt device.DType) *Expr {
	return intern(Expr{kind: Constant, dtype: dt, bits: bits})
}

// Apply is p applied to args, simplified where that changes no bit of any
// result. It panics if p is not defined for operands of these types; there are
// no implicit conversions.
func Apply(p Prim, args ...*Expr) *Expr {
	if p == PrimCast {
		panic("kernel: Apply(PrimCast): the type is missing, use Cast")
	}
	n := Expr{kind: Application, prim: p}
	if copy(n.in[:], args); len(args) != p.Arity() {
		panic(fmt.Sprintf("kernel: %v takes %d operands, not %d", p, p.Arity(), len(args)))
	}
	of := args[len(args)-1].dtype // the type of all operands except the condition of where
	ok := p.Func(of) != nil
	for i, a := range args {
		if p == PrimWhere && i == 0 {
			ok = ok && a.dtype == device.Bool
		} else {
			ok = ok && a.dtype == of
		}
	}
	if !ok {
		types := make([]string, len(args))
		for i, a := range args {
			types[i] = a.dtype.String()
		}
		panic(fmt.Sprintf("kernel: %v is not defined for %s", p, strings.Join(types, ", ")))
	}
	n.dtype = of
	if p.isComparison() {
		n.dtype = device.Bool
	}
	return simplify(n)
}

// Cast is x converted to dt. Numbers are rounded to the nearest of a floating-point type, once, ties to even. Floats
// are truncated to integers; values out of range become the nearest integer, and NaN becomes 0. An int64 that is out
// of range of a smaller integer type wraps around. A number is true when it is not 0, and true is 1.
//
// The primitive itself converts between the types that are computed in, and between each type for storage and those:
// see [Converts]. Other conversions are made of these.
func Cast(x *Expr, dt device.DType) *Expr {
	from := x.dtype
	switch {
	case from == dt:
		return x
	case from.IsStorage() && dt != from.Wide():
		return Cast(Cast(x, from.Wide()), dt)
	case Converts(from, dt):
	case dt.IsFloat(): // Bool, which float32 holds
		return Cast(Cast(x, dt.Wide()), dt)
	default: // to Int32 or Uint8, from Bool or from a float, which saturates
		least, most := bounds(dt)
		return Cast(Max(Min(Cast(x, device.Int64), Const(most, device.Int64)), Const(least, device.Int64)), dt)
	}
	return simplify(Expr{kind: Application, prim: PrimCast, dtype: dt, in: [3]*Expr{x}})
}

// Converts reports whether PrimCast itself converts between two different types; see [Cast].
func Converts(from, to device.DType) bool { return casts[from][to] != nil }

// bounds returns the least and the greatest value of Int32 or Uint8.
func bounds(dt device.DType) (least, most float64) {
	if dt == device.Uint8 {
		return 0, math.MaxUint8
	}
	return math.MinInt32, math.MaxInt32
}

// DType is the type of e's value.
func (e *Expr) DType() device.DType { return e.dtype }

// Kind tells what e is.
func (e *Expr) Kind() Kind { return e.kind }

// Prim is the primitive that an Application applies.
func (e *Expr) Prim() Prim { return e.prim }

// Index is the number of an Operand or Immediate.
func (e *Expr) Index() int { return int(e.bits) }

// Bits is the value of a Constant; see [Value].
func (e *Expr) Bits() uint64 { return e.bits }

// In lists the operands of an Application; it is nil for others. The caller must not change it.
func (e *Expr) In() []*Expr {
	if e.kind != Application {
		return nil
	}
	return e.in[:e.prim.Arity()]
}

// Args is the least number of inputs of a command that computes e: one more than the highest Arg in e.
func (e *Expr) Args() int { return e.highest(Operand) + 1 }

// Imms is the least number of immediates of a command that computes e.
func (e *Expr) Imms() int { return e.highest(Immediate) + 1 }

// highest is the highest index of a node of the given kind, or -1.
func (e *Expr) highest(kind Kind) int {
	i := -1
	for _, x := range e.Nodes() {
		if x.kind == kind {
			i = max(i, x.Index())
		}
	}
	return i
}

// Nodes lists every node of e once, operands before what uses them, e last.
// The order depends on the structure of e alone.
func (e *Expr) Nodes() []*Expr {
	var order []*Expr
	seen := map[*Expr]bool{}
	var visit func(*Expr)
	visit = func(x *Expr) {
		if seen[x] {
			return
		}
		seen[x] = true
		for _, in := range x.In() {
			visit(in)
		}
		order = append(order, x)
	}
	visit(e)
	return order
}

// Key is e as a straight-line program; equal keys compute the same bits.
func (e *Expr) Key() string {
	var b strings.Builder
	number := map[*Expr]int{}
	for i, x := range e.Nodes() {
		number[x] = i
		switch x.kind {
		case Operand:
			fmt.Fprintf(&b, "arg%d", x.Index())
		case Immediate:
			fmt.Fprintf(&b, "imm%d", x.Index())
		case Constant:
			fmt.Fprintf(&b, "%#x", x.bits)
		case Application:
			b.WriteString(x.prim.String())
			for _, in := range x.In() {
				fmt.Fprintf(&b, " %d", number[in])
			}
		}
		fmt.Fprintf(&b, ":%v;", x.dtype)
	}
	return b.String()
}

// String is e for people, in the notation of C with x, y, z, u, v, w, t for the operands:
// "tanh(x) * y". Shared subexpressions are written out at each use.
func (e *Expr) String() string {
	switch e.kind {
	case Operand:
		return string("xyzuvwt"[e.Index()])
	case Immediate:
		return fmt.Sprintf("imm%d", e.Index())
	case Constant:
		return formatBits(e.bits, e.dtype)
	}
	if e.prim == PrimCast {
		return e.dtype.String() + "(" + e.in[0].String() + ")"
	}
	operands := make([]string, 0, len(e.in))
	for _, in := range e.In() {
		s := in.String()
		if in.kind == Application && in.prim.isInfix() && !strings.Contains(e.prim.text(), "(") {
			s = "(" + s + ")"
		}
		operands = append(operands, s)
	}
	return expand(e.prim.text(), operands)
}

// isInfix reports whether p's text needs parentheses inside the text of another primitive.
func (p Prim) isInfix() bool {
	return strings.Contains(p.text(), " ") && !strings.Contains(p.text(), "(")
}

// expand replaces the words x, y and z of a primitive's text.
func expand(text string, operands []string) string {
	var b strings.Builder
	for i := range len(text) {
		k := strings.IndexByte("xyz", text[i])
		isWord := (i == 0 || !isLetter(text[i-1])) && (i+1 == len(text) || !isLetter(text[i+1]))
		if k >= 0 && isWord {
			b.WriteString(operands[k])
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }
