package tensor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/fault"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Random programs of tensors. Each runs in all modes of the engine, with and without failures, beside an
// interpreter: plain loops over float64s, without modes and failures. The program must read the same values and
// errors in all modes. The values are those of the interpreter. A tensor fails exactly if it depends on a failure,
// and with the first cause.
//
// Elements are integers that are so small that sums are exact in any order. So there is one right answer.

var programs = flag.Int("programs", 25, "number of random programs of tensors")

// A variable is a tensor of a program, with what the interpreter knows about it.
type variable struct {
	x    *tensor.Tensor
	m    array
	dev  int
	line int         // of this file, on which it was made
	of   []*variable // what it was made of, in the order of the operands
	many bool        // it takes many operations, any of which may spoil it
}

// A tensorProgram draws its steps from a seeded generator. It draws the same in each mode.
type tensorProgram struct {
	*rand.Rand
	devs   []device.Device
	e      *engine.Engine
	gen    *tensor.Generator
	drawn  []int64 // all numbers of gen, and how many of them were drawn
	given  int
	vars   []*variable
	all    []*variable
	cells  []*tensor.Buffer
	held   []*variable // by cell: the variable that it holds
	line   int         // of the operation under way
	seen   []string    // what the program has read
	limit  float64     // of elements
	failed error       // the first difference from the interpreter
}

const (
	drawnLo, drawnHi = -9, 10
	maxDrawn         = 4096
)

func newTensorProgram(seed uint64, devs []device.Device, e *engine.Engine, drawn []int64) *tensorProgram {
	p := &tensorProgram{Rand: rand.New(rand.NewPCG(seed, 1)), devs: devs, e: e, gen: tensor.NewGenerator(seed), drawn: drawn, limit: 64}
	for range 3 {
		p.add(p.leaf())
	}
	for range 2 {
		v := p.vars[p.IntN(len(p.vars))]
		p.cells, p.held = append(p.cells, tensor.NewBuffer(v.x)), append(p.held, v)
	}
	return p
}

// at notes the line of the call that follows it.
func (p *tensorProgram) at() {
	_, _, p.line, _ = runtime.Caller(1)
}

func (p *tensorProgram) add(v *variable) *variable {
	p.all = append(p.all, v)
	if len(p.vars) < 8 {
		p.vars = append(p.vars, v)
	} else {
		p.vars[p.IntN(len(p.vars))] = v
	}
	return v
}

// made adds a variable for x, the result of the last operation on some variables.
func (p *tensorProgram) made(x *tensor.Tensor, m array, of ...*variable) *variable {
	v := &variable{x: x, m: m, dev: -1, line: p.line, of: of}
	for i, d := range p.devs {
		if x.Device() == d {
			v.dev = i
		}
	}
	p.all = append(p.all, v)
	return v
}

func (p *tensorProgram) some() *variable { return p.vars[p.IntN(len(p.vars))] }

func (p *tensorProgram) shape() []int {
	shape := make([]int, p.IntN(4))
	for i := range shape {
		shape[i] = 1 + p.IntN(4)
	}
	return shape
}

// leaf makes a tensor of small integers.
func (p *tensorProgram) leaf() *variable {
	m := array{[]device.DType{tensor.Float32, tensor.Float64, tensor.Int64}[p.IntN(3)], p.shape(), nil}
	for range device.Shape(m.shape).Size() {
		m.data = append(m.data, float64(p.IntN(19)-9))
	}
	return p.made(m.tensor(p.devs[p.IntN(len(p.devs))]), m)
}

// like returns v, converted to another type and copied to another device if it differs.
func (p *tensorProgram) like(v *variable, dt device.DType, dev int) *variable {
	if v.m.dtype != dt {
		m := array{dt, v.m.shape, slices.Clone(v.m.data)}
		if dt == tensor.Bool {
			for i, x := range m.data {
				m.data[i] = 0
				if x != 0 {
					m.data[i] = 1
				}
			}
		}
		p.at()
		x := v.x.As(dt)
		p.line++
		v = p.made(x, m, v)
	}
	if v.dev != dev {
		p.at()
		x := v.x.To(p.devs[dev])
		p.line++
		v = p.made(x, v.m, v)
	}
	return v
}

// number returns v, converted to int64 if it is of booleans.
func (p *tensorProgram) number(v *variable) *variable {
	if v.m.dtype == tensor.Bool {
		return p.like(v, tensor.Int64, v.dev)
	}
	return v
}

// small returns v with elements within the limit.
func (p *tensorProgram) small(v *variable) *variable {
	if !slices.ContainsFunc(v.m.data, func(x float64) bool { return math.Abs(x) > p.limit }) {
		return v
	}
	m := array{v.m.dtype, v.m.shape, nil}
	for _, x := range v.m.data {
		m.data = append(m.data, max(-p.limit, min(p.limit, x)))
	}
	upper, lower := p.constant(v.m.dtype, p.limit, v.dev), p.constant(v.m.dtype, -p.limit, v.dev)
	p.at()
	x := v.x.Minimum(upper.x)
	p.line++
	low := p.made(x, array{v.m.dtype, v.m.shape, mapped(v.m.data, func(x float64) float64 { return min(p.limit, x) })}, v, upper)
	p.at()
	x = low.x.Maximum(lower.x)
	p.line++
	return p.made(x, m, low, lower)
}

// constant makes a tensor of one element.
func (p *tensorProgram) constant(dt device.DType, v float64, dev int) *variable {
	m := array{dt, []int{}, []float64{v}}
	return p.made(m.tensor(p.devs[dev]), m)
}

func mapped(data []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(data))
	for i, v := range data {
		out[i] = f(v)
	}
	return out
}

// A unaryOp is an elementwise operation of the library and of the interpreter.
type unaryOp struct {
	lib func(p *tensorProgram, x *tensor.Tensor) *tensor.Tensor
	ref func(x float64) float64
}

type binaryOp struct {
	lib func(p *tensorProgram, x, y *tensor.Tensor) *tensor.Tensor
	ref func(x, y float64) float64
	is  bool // the result is of booleans
}

type ten = tensor.Tensor

var unaryOps = []unaryOp{
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.Neg() }, func(x float64) float64 { return 0 - x }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.Abs() }, math.Abs},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.Square() }, func(x float64) float64 { return x * x }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.AddScalar(3) }, func(x float64) float64 { return x + 3 }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.MulScalar(-2) }, func(x float64) float64 { return x * -2 }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.Sign() }, func(x float64) float64 {
		return float64(boolOf(x > 0) - boolOf(x < 0))
	}},
}

var floatOps = []unaryOp{
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.ReLU() }, func(x float64) float64 { return max(x, 0) }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.AddScalar(0.5).Floor() }, func(x float64) float64 { return x }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.Square().Sqrt() }, math.Abs},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.Sub(x).Exp() }, func(float64) float64 { return 1 }},
	{func(p *tensorProgram, x *ten) *ten { p.at(); return x.MulScalar(1e6).Tanh() }, func(x float64) float64 {
		return float64(boolOf(x > 0) - boolOf(x < 0))
	}},
}

var binaryOps = []binaryOp{
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Add(y) }, func(x, y float64) float64 { return x + y }, false},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Sub(y) }, func(x, y float64) float64 { return x - y }, false},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Mul(y) }, func(x, y float64) float64 { return x * y }, false},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.AddScaled(y, 2) }, func(x, y float64) float64 { return x + 2*y }, false},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Maximum(y) }, math.Max, false},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Minimum(y) }, math.Min, false},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Lt(y) }, func(x, y float64) float64 { return float64(boolOf(x < y)) }, true},
	{func(p *tensorProgram, x, y *ten) *ten { p.at(); return x.Eq(y) }, func(x, y float64) float64 { return float64(boolOf(x == y)) }, true},
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// broadcast returns the shape that two shapes are broadcast to.
func broadcast(a, b []int) ([]int, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		switch at := len(a) - len(b) + i; {
		case out[at] == n || n == 1:
		case out[at] == 1:
			out[at] = n
		default:
			return nil, false
		}
	}
	return out, true
}

// step does one thing.
func (p *tensorProgram) step() {
	v := p.some()
	switch r := p.IntN(100); {
	case r < 8:
		p.add(p.leaf())
	case r < 25:
		v = p.number(v)
		ops := unaryOps
		if v.m.dtype.IsFloat() && p.IntN(2) == 0 {
			ops = floatOps
		}
		f := ops[p.IntN(len(ops))]
		x := f.lib(p, v.x)
		p.add(p.small(p.made(x, array{v.m.dtype, v.m.shape, mapped(v.m.data, f.ref)}, v)))
	case r < 48:
		p.binary(v, p.some())
	case r < 53:
		p.where(v, p.some())
	case r < 61:
		p.reduce(p.number(v))
	case r < 66:
		p.product(p.number(v), p.number(p.some()))
	case r < 76:
		p.at()
		x, m, _ := randomView(p.Rand, v.x, model{v.m.shape, v.m.data})
		if len(m.data) > 0 && len(m.data) <= 200 {
			p.line = 0 // a view enqueues nothing, and a copy of Reshape is enqueued at another line
			p.add(p.made(x, array{v.m.dtype, m.shape, m.data}, v))
		}
	case r < 80:
		p.add(p.like(v, []device.DType{tensor.Float32, tensor.Float64, tensor.Int64, tensor.Bool}[p.IntN(4)], p.IntN(len(p.devs))))
	case r < 84:
		p.cell(v)
	case r < 88:
		p.draw()
	case r < 91:
		p.quotient(p.number(v))
	case r < 94:
		p.gradient()
	case r < 99:
		p.look(v)
	default:
		p.seen = append(p.seen, "all: "+listOf(p.e.WaitAll(context.Background())))
	}
}

func (p *tensorProgram) binary(a, b *variable) {
	a, b = p.number(a), p.number(b)
	shape, ok := broadcast(a.m.shape, b.m.shape)
	if !ok || device.Shape(shape).Size() > 200 {
		b, shape = a, a.m.shape
	}
	b = p.like(b, a.m.dtype, a.dev)
	f := binaryOps[p.IntN(len(binaryOps))]
	m := array{a.m.dtype, shape, nil}
	if f.is {
		m.dtype = tensor.Bool
	}
	for _, index := range indices(shape) {
		m.data = append(m.data, f.ref(a.m.at(index), b.m.at(index)))
	}
	x := f.lib(p, a.x, b.x)
	p.add(p.small(p.made(x, m, a, b)))
}

func (p *tensorProgram) where(a, b *variable) {
	a, b = p.number(a), p.number(b)
	shape, ok := broadcast(a.m.shape, b.m.shape)
	if !ok || device.Shape(shape).Size() > 200 {
		b, shape = a, a.m.shape
	}
	b = p.like(b, a.m.dtype, a.dev)
	c := p.like(a, tensor.Bool, a.dev)
	m := array{a.m.dtype, shape, nil}
	for _, index := range indices(shape) {
		if c.m.at(index) != 0 {
			m.data = append(m.data, a.m.at(index))
		} else {
			m.data = append(m.data, b.m.at(index))
		}
	}
	p.at()
	x := tensor.Where(c.x, a.x, b.x)
	p.line++
	p.add(p.made(x, m, c, a, b))
}

func (p *tensorProgram) reduce(v *variable) {
	var axes []int
	out, kept := []int{}, make([]bool, len(v.m.shape))
	for axis, n := range v.m.shape {
		kept[axis] = p.IntN(2) == 0
		if kept[axis] {
			out = append(out, n)
		} else {
			axes = append(axes, axis)
		}
	}
	if len(axes) == 0 {
		return
	}
	begin, fold := math.Inf(-1), math.Max
	kind := p.IntN(3)
	switch kind {
	case 0:
		begin, fold = 0, func(x, y float64) float64 { return x + y }
	case 1:
		begin, fold = math.Inf(1), math.Min
	}
	m := array{v.m.dtype, out, nil}
	for range device.Shape(out).Size() {
		m.data = append(m.data, begin)
	}
	for _, index := range indices(v.m.shape) {
		at := 0
		for axis, n := range v.m.shape {
			if kept[axis] {
				at = at*n + index[axis]
			}
		}
		m.data[at] = fold(m.data[at], v.m.at(index))
	}
	var x *tensor.Tensor
	switch kind {
	case 0:
		p.at()
		x = v.x.Sum(axes...)
	case 1:
		p.at()
		x = v.x.Min(axes...)
	default:
		p.at()
		x = v.x.Max(axes...)
	}
	p.line++
	p.add(p.small(p.made(x, m, v)))
}

// product multiplies two matrices.
func (p *tensorProgram) product(a, b *variable) {
	if !a.m.dtype.IsFloat() {
		a = p.like(a, tensor.Float32, a.dev)
	}
	if len(a.m.shape) != 2 || len(b.m.shape) != 2 || a.m.shape[1] != b.m.shape[0] {
		if len(a.m.shape) != 2 {
			return
		}
		p.line = 0
		b = p.made(a.x.T(), model{a.m.shape, a.m.data}.turned(a.m.dtype), a)
	}
	b = p.like(b, a.m.dtype, a.dev)
	m := array{a.m.dtype, []int{a.m.shape[0], b.m.shape[1]}, nil}
	for _, index := range indices(m.shape) {
		sum := 0.0
		for l := range a.m.shape[1] {
			sum += a.m.at([]int{index[0], l}) * b.m.at([]int{l, index[1]})
		}
		m.data = append(m.data, sum)
	}
	p.at()
	x := a.x.MatMul(b.x)
	p.line++
	p.add(p.small(p.made(x, m, a, b)))
}

func (m model) turned(dt device.DType) array {
	t := m.reorder([]int{m.shape[1], m.shape[0]}, func(index []int) []int { return []int{index[1], index[0]} })
	return array{dt, t.shape, t.data}
}

// cell sets a cell, reads it, or restores it.
func (p *tensorProgram) cell(v *variable) {
	i := p.IntN(len(p.cells))
	switch p.IntN(3) {
	case 0:
		p.cells[i].Set(v.x)
		p.held[i] = v
	case 1:
		p.add(p.held[i])
		p.vars[p.IntN(len(p.vars))] = &variable{x: p.cells[i].Value(), m: p.held[i].m, dev: p.held[i].dev, of: []*variable{p.held[i]}}
	default:
		s := tensor.Snapshot(p.cells[0], p.cells[1], p.gen)
		for range 1 + p.IntN(3) {
			p.cells[p.IntN(2)].Set(p.some().x)
			p.gen.RandInt(0, 5, 1+p.IntN(3))
		}
		s.Restore()
	}
}

// draw draws random numbers.
func (p *tensorProgram) draw() {
	m := array{tensor.Int64, p.shape(), nil}
	n := device.Shape(m.shape).Size()
	if p.given+n > len(p.drawn) {
		return
	}
	for _, v := range p.drawn[p.given : p.given+n] {
		m.data = append(m.data, float64(v))
	}
	p.given += n
	p.at()
	x := p.gen.RandInt(drawnLo, drawnHi, m.shape...)
	p.line++
	v := p.made(x, m)
	if v.dev < 0 {
		to := p.IntN(len(p.devs))
		p.at()
		x := v.x.To(p.devs[to])
		p.line++
		v = p.made(x, m, v)
	}
	p.add(v)
}

// quotient divides integers, which fails if a divisor is 0.
func (p *tensorProgram) quotient(v *variable) {
	v = p.like(v, tensor.Int64, v.dev)
	m := array{tensor.Int64, v.m.shape, nil}
	for _, x := range v.m.data {
		q := 0.0
		if x != 0 {
			q = math.Trunc(100 / x)
		}
		m.data = append(m.data, q)
	}
	hundred := p.constant(tensor.Int64, 100, v.dev)
	p.at()
	x := hundred.x.Div(v.x)
	p.line++
	p.add(p.small(p.made(x, m, hundred, v)))
}

// gradient differentiates a random function that is quadratic in each element of a parameter. So the gradient is
// half of the difference between the function's values one to the right and one to the left.
func (p *tensorProgram) gradient() {
	dev := p.IntN(len(p.devs))
	on := p.devs[dev]
	n, k := 1+p.IntN(3), 1+p.IntN(3)
	w := random64(p.Rand, n, k)
	a, b, c := random64(p.Rand, 1+p.IntN(3), n), random64(p.Rand, 1, k), random64(p.Rand, 1, 1)
	useSlice, useSum, turn := p.IntN(2) == 0, p.IntN(2) == 0, p.IntN(2) == 0
	from := p.IntN(n)
	of := []*variable{p.made(w.tensor(on), array{w.dtype, w.shape, slices.Clone(w.data)}), p.made(a.tensor(on), a), p.made(b.tensor(on), b), p.made(c.tensor(on), c)}
	param := tensor.NewParam(of[0].x)

	ref := func(w array) float64 {
		var y [][]float64 // a·w + b, or a slice of it, times c, squared and summed
		for i := range a.shape[0] {
			row := make([]float64, k)
			for j := range row {
				for l := range n {
					row[j] += a.data[i*n+l] * w.data[l*k+j]
				}
				row[j] = (row[j] + b.data[j]) * c.data[0]
			}
			y = append(y, row)
		}
		total := 0.0
		for _, row := range y {
			for _, v := range row {
				total += v * v
			}
		}
		if useSlice {
			for _, v := range w.data[from*k : n*k] {
				total += 3 * v
			}
		}
		if useSum {
			sum := 0.0
			for _, v := range w.data {
				sum += v
			}
			total += sum * sum
		}
		return total
	}
	x := param.Value()
	p.at()
	from0 := p.line
	y := of[1].x.MatMul(x).Add(of[2].x).Mul(of[3].x)
	if turn {
		y = y.T().Reshape(-1)
	}
	loss := y.Square().Sum()
	if useSlice {
		loss = loss.Add(x.Slice(0, from, n).MulScalar(3).Sum())
	}
	if useSum {
		loss = loss.Add(x.Sum().Square())
	}
	value := p.made(loss.Detach(), array{tensor.Float64, []int{}, []float64{ref(w)}}, of...)
	var grad *tensor.Tensor
	if p.IntN(2) == 0 {
		loss.Backward()
		grad = param.Grad()
	} else {
		grad = tensor.Grad(loss, x)[0]
	}
	p.at()
	value.line = -from0*10_000 - p.line // a range of lines
	m := array{tensor.Float64, w.shape, nil}
	for i, v := range w.data {
		w.data[i] = v + 1
		above := ref(w)
		w.data[i] = v - 1
		m.data = append(m.data, (above-ref(w))/2)
		w.data[i] = v
	}
	g := p.made(grad, m, of...)
	g.line, g.many, value.many = value.line, true, true
	p.look(value)
	p.look(g)
	p.add(p.small(g))
}

// random64 returns a matrix of small integers.
func random64(r *rand.Rand, rows, columns int) array {
	a := array{tensor.Float64, []int{rows, columns}, nil}
	for range rows * columns {
		a.data = append(a.data, float64(r.IntN(7)-3))
	}
	return a
}

// look reads v in one way or another.
func (p *tensorProgram) look(v *variable) {
	var got string
	switch p.IntN(4) {
	case 0:
		v.x.Ready() // the answer depends on time
		return
	case 1:
		got = describe(v.x.Wait())
	case 2:
		if len(v.m.data) == 0 {
			return
		}
		flat := v.x.Flatten()
		got = sprintOr(func() any { return flat.At(p.IntN(len(v.m.data))) })
	default:
		got = sprintOr(func() any { return values(v.x) })
	}
	p.seen = append(p.seen, got)
}

// sprintOr prints what f returns, or the failure that it panics with.
func sprintOr(f func() any) (text string) {
	defer func() {
		if v := recover(); v != nil {
			err, ok := v.(*engine.OpError)
			if !ok {
				panic(v)
			}
			text = describe(err)
		}
	}()
	return fmt.Sprint(f())
}

// describe prints an error without the number of the injected fault, which depends on the order of execution.
func describe(err error) string {
	var e *engine.OpError
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	cause := e.Err.Error()
	if errors.Is(err, fault.ErrInjected) {
		cause = "injected"
	}
	return fmt.Sprintf("%s %v %v on %v at %s:%d: %s", e.Op, e.Shapes, e.DTypes, e.Device, filepath.Base(e.File), e.Line, cause)
}

func listOf(err error) string {
	if err == nil {
		return "fine"
	}
	var all []string
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, describe(one))
	}
	return strings.Join(all, "; ")
}

// verify compares all variables with the interpreter, and their errors with those of what they were made of.
func (p *tensorProgram) verify() error {
	for i, v := range p.all {
		err := v.x.Wait()
		var inherited []error
		for _, o := range v.of {
			if err := o.x.Wait(); err != nil {
				inherited = append(inherited, err)
			}
		}
		what := fmt.Sprintf("variable %d of line %d", i, v.line)
		switch {
		case len(inherited) > 0 && (err == nil || !v.many && err != inherited[0]):
			return fmt.Errorf("%s: the error is %+v, but what it was made of has %+v", what, err, inherited)
		case err != nil && !slices.Contains(inherited, err):
			var e *engine.OpError
			if !errors.As(err, &e) || !v.isOn(e) {
				return fmt.Errorf("%s: the error is %+v", what, err)
			}
		case err == nil:
			if x := v.x; x.DType() != v.m.dtype || !slices.Equal(x.Shape(), v.m.shape) || !slices.Equal(values(x), v.m.data) {
				return fmt.Errorf("%s: %v%v %v, want %v%v %v", what, x.DType(), x.Shape(), values(x), v.m.dtype, v.m.shape, v.m.data)
			}
		}
	}
	return nil
}

// isOn reports whether a failure is of the operation that made v.
func (v *variable) isOn(e *engine.OpError) bool {
	switch file := filepath.Base(e.File); {
	case file == "structural_test.go" || file == "tensor_test.go": // views, and uploads
		return v.line == 0 || v.of == nil
	case file != "random_test.go":
		return false
	case v.line < 0:
		return -v.line/10_000 <= e.Line && e.Line <= -v.line%10_000
	}
	return e.Line == v.line
}

// kernels returns the names of the operations that run enqueues.
func (p *tensorProgram) kernels(run func()) (names []string) {
	stop := p.e.Record(func(ev engine.Event) {
		if !slices.Contains(names, ev.Op) {
			names = append(names, ev.Op)
		}
	})
	run()
	stop()
	return names
}

// tensorDevices are the devices of random programs.
type tensorDevices struct {
	devs     []device.Device
	backends []*fault.Backend
}

func newTensorDevices() *tensorDevices {
	d := &tensorDevices{}
	for i, b := range [...]device.Backend{cpu.New(), sim.New(sim.Options{}), sim.New(sim.Options{Queue: 4})} {
		w := fault.New(b)
		d.backends = append(d.backends, w)
		d.devs = append(d.devs, device.Wrap(fmt.Sprintf("device %d", i), device.KindSimulated, w))
	}
	return d
}

// arm sets f on all devices.
func (d *tensorDevices) arm(f fault.Faults) {
	for _, b := range d.backends {
		b.Arm(f)
	}
}

// left returns an error if memory is in use after the programs have ended.
func (d *tensorDevices) left() error {
	for i, b := range d.backends {
		if n := devicetest.Live(b, 0); n != 0 {
			return fmt.Errorf("%d bytes of device %d are lost", n, i)
		}
	}
	return nil
}

func (d *tensorDevices) close() {
	for _, b := range d.backends {
		b.Close()
	}
}

// run runs a program in one way. If f names a kernel, its commands fail. run returns what the program has read, and
// the names of its operations.
func (d *tensorDevices) run(seed uint64, o engine.Options, f fault.Faults) (seen, kernels []string, err error) {
	naive := engine.New(engine.Options{Mode: engine.Naive})
	restore := tensor.SetEngine(naive)
	drawn := tensor.NewGenerator(seed).RandInt(drawnLo, drawnHi, maxDrawn).Int64s() // in one draw
	restore()
	naive.Close()

	e := engine.New(o)
	defer tensor.SetEngine(e)()
	d.arm(f)
	p := newTensorProgram(seed, d.devs, e, drawn)
	steps := func() {
		for range 60 {
			p.step()
		}
	}
	if o.Tiny == engine.TinyAll { // Record would make the run the same as without TinyAll
		steps()
	} else {
		kernels = p.kernels(steps)
	}
	p.seen = append(p.seen, "at last: "+listOf(e.WaitAll(context.Background())))
	d.arm(fault.Faults{}) // otherwise reads would fail too
	for _, v := range p.all {
		p.seen = append(p.seen, describe(v.x.Wait()))
	}
	err = p.verify()
	if more := e.Close(); err == nil && more != nil {
		err = fmt.Errorf("after WaitAll: %w", more)
	}
	return p.seen, kernels, err
}

func TestRandomTensors(t *testing.T) {
	t.Logf("seed %d (go test -run RandomTensors -programs N -seed N)", *seed)
	failures := 0
	d := newTensorDevices()
	defer d.close()
	for i := range uint64(*programs) {
		at := *seed + i
		rng := rand.New(rand.NewPCG(at, 2))
		var f fault.Faults
		_, kernels, err := d.run(at, engine.Options{Mode: engine.Naive}, f)
		if err != nil {
			t.Fatalf("seed %d, naive: %v", at, err)
		}
		if len(kernels) > 0 && rng.IntN(3) > 0 {
			f = fault.Faults{Call: fault.Command, Kind: fault.Kind(rng.IntN(2)), Kernel: kernels[rng.IntN(len(kernels))], Rate: 1}
		}
		want, _, err := d.run(at, engine.Options{Mode: engine.Naive}, f)
		if err != nil {
			t.Fatalf("seed %d, naive, %+v: %v", at, f, err)
		}
		if strings.Contains(strings.Join(want, "\n"), "injected") {
			failures++
		}
		for _, o := range []engine.Options{
			{Mode: engine.Async, Workers: 1 + rng.IntN(4), Ring: 2 << rng.IntN(8)},
			{Mode: engine.Async, Workers: 2, MaxBytes: int64(1 + rng.IntN(500)), Tiny: engine.TinyAll},
			{Mode: engine.Shuffle, Seed: rng.Uint64()},
		} {
			got, _, err := d.run(at, o, f)
			if err != nil {
				t.Fatalf("seed %d, %+v, %+v: %v", at, o, f, err)
			}
			for k := range max(len(got), len(want)) {
				if k >= len(got) || k >= len(want) || got[k] != want[k] {
					t.Fatalf("seed %d, %+v, %+v: observation %d of %d is\n%v\nwant, of %d\n%v", at, o, f, k, len(got), got[k], len(want), want[k])
				}
			}
		}
		if err := d.left(); err != nil {
			t.Fatalf("seed %d, %+v: %v", at, f, err)
		}
	}
	if failures == 0 && *programs > 20 {
		t.Error("nothing has failed in any program")
	}
}
