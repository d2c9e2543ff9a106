package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A counter is a cell that a user defines.
type counter struct{ n int64 }

func (c *counter) Value() *tensor.Tensor { return tensor.From([]int64{c.n}) }
func (c *counter) Set(t *tensor.Tensor)  { c.n = t.ItemInt() }

// A State has values, gradients, positions, and cells without a value. It can be restored several times.
func TestSnapshot(t *testing.T) {
	w, unset := tensor.NewParam(tensor.From([]float32{1, 2})), tensor.NewParam(nil)
	mean, empty := tensor.NewBuffer(tensor.From([]float32{5})), tensor.NewBuffer(nil)
	g, own := tensor.NewGenerator(7), &counter{3}
	g.Rand(3)
	w.Value().Sum().Backward()
	value, grad := w.Value(), w.Grad()

	s := tensor.Snapshot(w, unset, mean, empty, g, own)
	want := []*tensor.Tensor{value, grad, nil, nil, mean.Value(), nil}
	if got := s.Tensors(); len(got) != 7 || !slices.EqualFunc(got[:6], want, isSame) || got[6].ItemInt() != 3 {
		t.Errorf("Tensors: %v", got)
	}
	next := g.Rand(4).Float32s()
	for range 2 {
		w.Set(tensor.Zeros(2))
		w.Value().Sum().Backward()
		unset.Set(tensor.Zeros(1))
		mean.Set(tensor.Zeros(1))
		empty.Set(tensor.Zeros(1))
		g.Rand(9)
		own.n = 8
		s.Restore()
		if !isSame(w.Value(), value) || !isSame(w.Grad(), grad) {
			t.Errorf("the parameter is %v with gradient %v", w.Value(), w.Grad())
		}
		if unset.IsSet() || empty.IsSet() {
			t.Error("a cell without a value has one")
		}
		if mean.Value().Item() != 5 || own.n != 3 {
			t.Errorf("the buffer is %v, the counter %d", mean.Value(), own.n)
		}
		if got := g.Rand(4).Float32s(); !slices.Equal(got, next) {
			t.Errorf("the stream goes on with %v, want %v", got, next)
		}
	}
	tensor.Grad(w.Value().Square().Sum(), w.Value()) // the value is tracked again
	w.Value().Sum().Backward()
	if got := w.Grad().Float32s(); !slices.Equal(got, []float32{2, 2}) {
		t.Errorf("gradients add up to %v", got)
	}
	if got := tensor.DefaultGenerator().Cells(); len(got) != 1 || got[0] != tensor.DefaultGenerator() {
		t.Errorf("the cells of a generator are %v", got)
	}
}

// isSame reports whether a and b are both nil or share memory.
func isSame(a, b *tensor.Tensor) bool {
	return a == nil && b == nil || a != nil && b != nil && a.SharesMemory(b)
}

// A tidy cell is one that a user defines. It declares values dead that it no longer holds.
type tidy struct{ t *tensor.Tensor }

func (c *tidy) Value() *tensor.Tensor { return c.t }
func (c *tidy) Set(t *tensor.Tensor) {
	tensor.Dead(c.t)
	c.t = t
}

// A State does not change when cells declare handles dead that they got from it. It can be restored as long as its
// own handles are alive.
func TestSnapshotOfTidyCell(t *testing.T) {
	c, w := &tidy{tensor.Full(1, 40, 40)}, tensor.NewParam(tensor.Full(2, 40, 40))
	s := tensor.Snapshot(c, w)
	for range 3 {
		c.Set(tensor.Zeros(40, 40))
		w.Set(tensor.Zeros(40, 40))
		s.Restore()
		if got, also := c.Value().At(39, 39), w.Value().At(39, 39); got != 1 || also != 2 {
			t.Errorf("restored: %v and %v", got, also)
		}
	}
	tensor.Dead(s.Tensors()[1])
	held := c.t
	if m := mistake(s.Restore); m == nil || m.Op != "Restore" || !strings.HasPrefix(m.Text, op.MistakeDead) {
		t.Errorf("Restore of what is dead: %v", m)
	}
	if c.t != held || w.Value().At(0, 0) != 2 {
		t.Error("a Restore that panics changes cells")
	}
	tensor.Dead(c.t)
	if m := mistake(func() { tensor.Snapshot(c) }); m == nil || m.Op != "Snapshot" || !strings.HasPrefix(m.Text, op.MistakeDead) {
		t.Errorf("a Snapshot of what is dead: %v", m)
	}
}

// Frozen cells keep their values, whatever happens to the cells that they were made from.
func TestFrozenCells(t *testing.T) {
	w, b := tensor.NewParam(tensor.From([]float32{1})), tensor.NewBuffer(tensor.From([]float32{2}).Track())
	fw, fb := w.Frozen(), b.Frozen()
	s := tensor.Snapshot(fw, fb)
	w.Set(tensor.Zeros(1))
	b.Set(tensor.Zeros(1))
	s.Restore()
	fw.ZeroGrad()
	if fw.Value().Item() != 1 || fb.Value().Item() != 2 || fw.Grad() != nil {
		t.Errorf("frozen: %v, %v", fw.Value(), fb.Value())
	}
	for want, f := range map[string]func(){
		"tensor: Set: " + op.MistakeFrozen + ": float32[1]":                                 func() { fw.Set(tensor.Zeros(1)) },
		"tensor: Set: " + op.MistakeFrozen + ": float32[2]":                                 func() { fb.Set(tensor.Zeros(2)) },
		"tensor: Frozen: " + op.MistakeNoParameter:                                          func() { tensor.NewParam(nil).Frozen() },
		"tensor: Frozen: " + op.MistakeNoBuffer:                                             func() { tensor.NewBuffer(nil).Frozen() },
		"tensor: Value: " + op.MistakeNoBuffer:                                              func() { tensor.NewBuffer(nil).Value() },
		"tensor: Backward: no gradient (it depends on nothing that is tracked): float32[1]": func() { fw.Value().Mul(fb.Value()).Backward() },
		"tensor: Backward: no gradient (it depends on nothing that is tracked): float32[]":  func() { b.Value().Sum().Backward() },
	} {
		func() {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok || m.Error() != want {
					t.Errorf("got %v, want %s", m, want)
				}
			}()
			f()
		}()
	}
}
