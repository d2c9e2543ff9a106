package opencltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

var bg = context.Background()

// The kernels of programs, on int64.
var (
	x, y     = kernel.Arg(0, device.Int64), kernel.Arg(1, device.Int64)
	sum      = mapped("sum", kernel.Add(x, y)) // also of views
	mix      = mapped("mix", kernel.Sub(kernel.Mul(x, kernel.Const(3, device.Int64)), y))
	quotient = mapped("quotient", kernel.Div(x, y))
	gather   = device.NewKernel("gather", device.Gather, nil, device.Int64, device.Int64, device.Int64)
	fill     = device.NewKernel("fill", device.Fill, nil, device.Int64)
)

func mapped(name string, e *kernel.Expr) *device.Kernel {
	return device.NewKernel(name, device.Map, e, device.Int64, device.Int64, device.Int64)
}

// A value is what the model knows of what an operation has written. Values don't change: an
// operation in place makes another.
type value struct {
	elements []int64 // computed at once, in program order; meaningless if isBad
	from     []*value
	number   int  // of the operation, by which its shapes name it; 0: a copy
	fails    bool // the operation does, whatever the driver does
	isBad    bool // it does, or one before it
	scope    int  // that it belongs to; 0: none
}

// A variable is a value and where the engine has it.
type variable struct {
	*value
	storage *engine.Storage
}

// An endOf is the cause of the end of a scope.
type endOf int

func (e endOf) Error() string { return fmt.Sprintf("scope %d has ended", int(e)) }

// A program draws one operation after the other, hands it to the engine, computes it in Go, and
// compares whatever comes out.
type program struct {
	rnd   *rand.Rand
	e     *engine.Engine
	host  device.Device
	on    []device.Device // the device, in each of the scopes
	end   []context.CancelCauseFunc
	ended []bool
	calls *clfault.Calls
	hits  int              // calls that had failed before
	cause func(error) bool // whether an error is what an injected fault looks like

	vars    []variable
	ops     int           // so many so far
	plans   int           // operations that had good operands and failed by themselves
	failed  map[int]error // operations that are known to have failed
	pending []pendingRead // copies that nobody has looked at
}

type pendingRead struct {
	of   *value
	off  int
	n    int
	host *engine.Storage
}

// run runs it. Afterwards nothing is under way, and the memory of the variables is given back.
func (p *program) run() error {
	p.ended = []bool{false}
	for range 1 + p.rnd.IntN(3) {
		ctx, end := context.WithCancelCause(bg)
		defer end(nil)
		p.on, p.end, p.ended = append(p.on, device.WithContext(ctx, p.on[0])), append(p.end, end), append(p.ended, false)
	}
	for range 2 + p.rnd.IntN(8) {
		p.vars = append(p.vars, p.upload(p.numbers(p.size())))
	}
	for range 1 << p.rnd.IntN(9) {
		if err := p.step(); err != nil {
			return err
		}
	}
	for i := range p.vars {
		p.read(&p.vars[i])
	}
	if err := p.lookAtAll(); err != nil {
		return err
	}
	for _, v := range p.vars { // an operation that failed may have been found out only now
		if err := p.check(v.value, v.storage.Wait(bg, "again")); err != nil {
			return err
		}
	}
	if err := p.checkAll(p.e.WaitAll(bg)); err != nil {
		return err
	}
	for i, v := range p.vars {
		if !slices.ContainsFunc(p.vars[:i], func(w variable) bool { return w.storage == v.storage }) {
			p.e.Release(v.storage)
		}
	}
	p.plans = 0
	if err := p.checkAll(p.e.Close()); err != nil {
		return err
	}
	if n := p.e.Stats().InFlightBytes; n != 0 {
		return fmt.Errorf("%d bytes are in flight for ever", n)
	}
	return nil
}

// size draws how many elements a buffer has.
func (p *program) size() int {
	switch p.rnd.IntN(100) {
	case 0:
		return 150_000 // more than passes through the staging memory at once
	case 1, 2, 3, 4:
		return 1 + p.rnd.IntN(5000)
	}
	return 1 + p.rnd.IntN(1+p.rnd.IntN(300))
}

func hostOf(values []int64) *device.Buffer {
	b := device.HostBuffer(int64(8 * len(values)))
	copy(device.Slice[int64](b, 0, len(values)), values)
	return b
}

// upload makes a variable of numbers from the host.
func (p *program) upload(elements []int64) variable {
	scope := p.scope()
	return variable{&value{elements: elements, scope: scope}, p.e.FromHost(p.on[scope], hostOf(elements))}
}

// scope draws one, mostly none.
func (p *program) scope() int { return max(0, p.rnd.IntN(len(p.on)+3)-3) }

func (p *program) numbers(n int) []int64 {
	elements := make([]int64, n)
	for i := range elements {
		elements[i] = p.rnd.Int64N(2000) - 1000
	}
	return elements
}

// indices are of an axis of the given length; sometimes one is out of range.
func (p *program) indices(n, length int) []int64 {
	elements := make([]int64, n)
	for i := range elements {
		elements[i] = p.rnd.Int64N(int64(2*length)) - int64(length)
	}
	if p.rnd.IntN(12) == 0 {
		elements[p.rnd.IntN(n)] = int64(length)
	}
	return elements
}

func (p *program) some() *variable { return &p.vars[p.rnd.IntN(len(p.vars))] }

// enqueue hands an operation to the engine whose result is v, in a storage of its own or in that of the variable at.
func (p *program) enqueue(v *value, at *engine.Storage, c device.Command, operands ...variable) variable {
	p.ops++
	v.number = p.ops
	for _, x := range operands {
		v.from = append(v.from, x.value)
		v.isBad = v.isBad || x.isBad
	}
	if v.fails && !v.isBad {
		p.plans++
	}
	v.isBad = v.isBad || v.fails
	if at == nil {
		v.scope = p.scope()
		at = p.e.NewStorage(p.on[v.scope], int64(8*len(v.elements)))
	}
	c.N = len(v.elements)
	op := engine.Op{Cmd: c, Cost: 1000, Shapes: [device.MaxOperands]*device.Shape{{v.number}}}
	op.Operands[0] = at
	for i, x := range operands {
		op.Operands[i+1] = x.storage
	}
	p.e.Enqueue(&op)
	return variable{v, at}
}

// elementwise computes f for each element of as many as both have.
func elementwise(x, y []int64, f func(x, y int64) int64) []int64 {
	out := make([]int64, min(len(x), len(y)))
	for i := range out {
		out[i] = f(x[i], y[i])
	}
	return out
}

// step is one operation, or something that somebody does with the results.
func (p *program) step() error {
	a, b := p.some(), p.some()
	to := p.some()
	switch p.rnd.IntN(16) {
	case 0:
		p.replace(to, p.upload(p.numbers(p.size())))
	case 1:
		n, v := p.size(), p.rnd.Int64N(2000)-1000
		p.replace(to, p.enqueue(&value{elements: slices.Repeat([]int64{v}, n)}, nil, device.Command{Kernel: fill, Imm: [2]uint64{uint64(v)}}))
	case 2, 3:
		v := &value{elements: elementwise(a.elements, b.elements, func(x, y int64) int64 { return x + y })}
		p.replace(to, p.enqueue(v, nil, device.Command{Kernel: sum}, *a, *b))
	case 4, 5:
		v := &value{elements: elementwise(a.elements, b.elements, func(x, y int64) int64 { return x*3 - y })}
		p.replace(to, p.enqueue(v, nil, device.Command{Kernel: mix}, *a, *b))
	case 6, 7:
		if len(b.elements) >= len(a.elements) {
			v := &value{elements: elementwise(a.elements, b.elements, func(x, y int64) int64 { return x*3 - y }), scope: a.scope}
			*a = p.enqueue(v, a.storage, device.Command{Kernel: mix}, *a, *b)
		}
	case 8:
		p.replace(to, p.views(*a, *b))
	case 9:
		p.replace(to, p.divide(*a))
	case 10, 11:
		p.replace(to, p.pick(*a))
	case 12:
		off, n := p.part(a)
		v := &value{elements: a.elements[off : off+n], from: []*value{a.value}, isBad: a.isBad}
		v.scope = p.scope()
		p.replace(to, variable{v, p.e.Copy(a.storage, off, n, device.Int64, p.on[v.scope])})
	case 13, 14:
		p.read(a)
	default:
		return p.rarely(a)
	}
	return nil
}

// replace puts v in the place of a variable, of which the engine is told or the collector has to find out.
func (p *program) replace(at *variable, v variable) {
	if p.rnd.IntN(2) == 0 && !p.isBeingRead(at.storage) {
		p.e.Release(at.storage)
	}
	*at = v
}

// isBeingRead reports whether another variable is the same storage.
func (p *program) isBeingRead(s *engine.Storage) bool {
	n := 0
	for _, v := range p.vars {
		if v.storage == s {
			n++
		}
	}
	return n > 1
}

// part draws a part of a variable.
func (p *program) part(v *variable) (off, n int) {
	off = p.rnd.IntN(len(v.elements))
	return off, 1 + p.rnd.IntN(len(v.elements)-off)
}

// views adds what two views have, which go through their buffers forwards, backwards, in twos or not at all.
func (p *program) views(a, b variable) variable {
	n := 1 + p.rnd.IntN(max(1, min(len(a.elements), len(b.elements))/2))
	var at, stride [2]int
	for i, v := range []variable{a, b} {
		stride[i] = []int{1, -1, 2, 0}[p.rnd.IntN(4)]
		if 2*n > len(v.elements) && stride[i] == 2 {
			stride[i] = 1
		}
		span := (n - 1) * stride[i]
		at[i] = p.rnd.IntN(len(v.elements)-max(span, -span)) + max(0, -span)
	}
	elements := make([]int64, n)
	for i := range elements {
		elements[i] = a.elements[at[0]+i*stride[0]] + b.elements[at[1]+i*stride[1]]
	}
	args := &device.Args{Shape: device.Shape{n}, Strides: [device.MaxOperands][]int{nil, {stride[0]}, {stride[1]}}}
	return p.enqueue(&value{elements: elements}, nil, device.Command{Kernel: sum, Off: [device.MaxOperands]int{0, at[0], at[1]}, Args: args}, a, b)
}

// divide divides a by numbers, of which one is 0 sometimes.
func (p *program) divide(a variable) variable {
	divisors := p.numbers(len(a.elements))
	for i, d := range divisors {
		divisors[i] = d | 1
	}
	fails := p.rnd.IntN(8) == 0
	if fails {
		divisors[p.rnd.IntN(len(divisors))] = 0
	}
	v := &value{fails: fails, elements: make([]int64, len(divisors))}
	for i, d := range divisors {
		if d != 0 {
			v.elements[i] = a.elements[i] / d
		}
	}
	return p.enqueue(v, nil, device.Command{Kernel: quotient}, a, p.upload(divisors))
}

// pick picks elements of a.
func (p *program) pick(a variable) variable {
	length := len(a.elements)
	index := p.upload(p.indices(p.size(), length))
	v := &value{elements: make([]int64, len(index.elements))}
	for i, at := range index.elements {
		if at < 0 {
			at += int64(length)
		}
		if at >= int64(length) {
			v.fails = true
			continue
		}
		v.elements[i] = a.elements[at]
	}
	args := &device.Args{Shape: device.Shape{len(index.elements)}, Strides: [device.MaxOperands][]int{nil, {0}, {1}}, Ints: []int{length, 1}}
	return p.enqueue(v, nil, device.Command{Kernel: gather, Args: args}, a, index)
}

// read copies a part of a variable to the host, where somebody looks at it now or later.
func (p *program) read(a *variable) {
	off, n := p.part(a)
	p.pending = append(p.pending, pendingRead{a.value, off, n, p.e.Copy(a.storage, off, n, device.Int64, p.host)})
}

// rarely is what programs do from time to time.
func (p *program) rarely(a *variable) error {
	switch p.rnd.IntN(6) {
	case 0:
		if k := 1 + p.rnd.IntN(len(p.end)); p.rnd.IntN(4) == 0 {
			p.ended[k] = true
			p.end[k-1](endOf(k))
		}
	case 1:
		p.e.Bulk(func() {
			for range p.rnd.IntN(6) {
				b := p.some()
				v := &value{elements: elementwise(a.elements, b.elements, func(x, y int64) int64 { return x + y })}
				p.replace(p.some(), p.enqueue(v, nil, device.Command{Kernel: sum}, *a, *b))
				a = p.some()
			}
		})
	case 2:
		if err := a.storage.Wait(bg, "wait"); err != nil || a.isBad {
			return p.check(a.value, err)
		}
	default:
		return p.lookAtAll()
	}
	return nil
}

// lookAtAll looks at all that was copied to the host.
func (p *program) lookAtAll() error {
	for _, r := range p.pending {
		err := r.host.Wait(bg, "read")
		if e := p.check(r.of, err); e != nil {
			return fmt.Errorf("a read of %d elements from %d on of operation %d: %w", r.n, r.off, r.of.number, e)
		}
		if err == nil && !slices.Equal(device.Slice[int64](r.host.Buffer(), 0, r.n), r.of.elements[r.off:r.off+r.n]) {
			return fmt.Errorf("%d elements from %d on of operation %d differ", r.n, r.off, r.of.number)
		}
	}
	p.pending = p.pending[:0]
	return nil
}

// before lists what v depends on, itself among it.
func (p *program) before(v *value) []*value {
	seen := map[*value]bool{v: true}
	list := []*value{v}
	for i := 0; i < len(list); i++ {
		for _, w := range list[i].from {
			if !seen[w] {
				seen[w] = true
				list = append(list, w)
			}
		}
	}
	return list
}

// struck reports whether a fault was injected.
func (p *program) struck() bool { return len(p.calls.Failed()) > p.hits }

// check compares how v has come out with what can be: the failures of the program itself and only
// these, but for faults that were injected and scopes that have ended, which spoil what depends on
// the operations that they hit, and nothing else.
func (p *program) check(v *value, err error) error {
	before := p.before(v)
	if err == nil {
		if v.isBad {
			return errors.New("no error, though an operation before it has to fail")
		}
		for _, w := range before {
			if e := p.failed[w.number]; e != nil && w.number > 0 {
				return fmt.Errorf("no error, though operation %d has failed: %v", w.number, e)
			}
		}
		return nil
	}
	e, ok := errors.AsType[*engine.OpError](err)
	if !ok {
		return fmt.Errorf("%T is no *OpError: %w", err, err)
	}
	if errors.Is(err, device.ErrLost) && p.struck() && p.cause(err) {
		return nil // all that was under way has one cause
	}
	number := 0
	if len(e.Shapes) > 0 && len(e.Shapes[0]) > 0 {
		number = e.Shapes[0][0]
	}
	at := slices.IndexFunc(before, func(w *value) bool { return w.number == number })
	if number > 0 && at < 0 {
		return fmt.Errorf("the error of operation %d, on which it does not depend: %+v", number, err)
	}
	if end, ok := errors.AsType[endOf](err); ok {
		if !p.ended[end] || !slices.ContainsFunc(before, func(w *value) bool { return w.scope == int(end) }) {
			return fmt.Errorf("nothing of it belongs to the scope that has ended: %+v", err)
		}
		return nil
	}
	if p.struck() && p.cause(err) {
		if number > 0 {
			p.failed[number] = err
		}
		return nil
	}
	if number == 0 || !before[at].fails || !isPlanned(err) {
		return fmt.Errorf("nothing could fail in this way: %+v", err)
	}
	p.failed[number] = err
	return nil
}

// isPlanned reports whether err is what operations fail with by themselves.
func isPlanned(err error) bool {
	_, ok := errors.AsType[*device.IndexError](err)
	return ok || strings.Contains(err.Error(), "an integer is divided by zero")
}

// checkAll compares what WaitAll returns with what has failed.
func (p *program) checkAll(err error) error {
	var list []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	} else if err != nil {
		return fmt.Errorf("WaitAll: %w", err)
	}
	plans := 0
	for _, err := range list {
		_, isEnd := errors.AsType[endOf](err)
		switch {
		case isPlanned(err):
			plans++
		case isEnd || p.struck() && p.cause(err):
		default:
			return fmt.Errorf("WaitAll: nothing could fail in this way: %+v", err)
		}
	}
	if isCertain := !p.struck() && !slices.Contains(p.ended, true); isCertain && plans != p.plans || plans > p.plans {
		return fmt.Errorf("WaitAll tells of %d failures of operations by themselves, there were %d: %v", plans, p.plans, err)
	}
	return nil
}
