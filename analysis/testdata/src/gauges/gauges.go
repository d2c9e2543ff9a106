// Package gauges keeps tensors for those who look at them later.
package gauges

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Last keeps the last tensor.
type Last struct{ t *tensor.Tensor }

func (l *Last) Update(t *tensor.Tensor) { l.t = t }
func (l *Last) Value() float64          { return l.t.Item() }

// A Sum keeps all of them.
type Sum struct{ all []*tensor.Tensor }

func (s *Sum) Update(t *tensor.Tensor) { s.all = append(s.all, t) }
func (s *Sum) Value() float64          { return tensor.Stack(0, s.all...).Sum().Item() }

// A Meter is one of them.
type Meter interface {
	Update(t *tensor.Tensor)
	Value() float64
}

// A Namer need not wait.
type Namer interface{ Name() float64 }

type lazy struct{ t *tensor.Tensor }

func (lazy) Name() float64 { return 1 }

func (l *Last) Name() float64 { return l.t.Item() }

// A Box keeps anything.
type Box[T any] struct{ v T }

func (b *Box[T]) Put(v T) { b.v = v }
func (b *Box[T]) Take() T { return b.v }

// A Table has what was there when it was made.
type Table struct{ t *tensor.Tensor }

func New(t *tensor.Tensor) *Table { return &Table{t} }

func (t *Table) At(i int) float64 { return t.t.Row(i).Item() }

var noted *tensor.Tensor

func Note(t *tensor.Tensor) { noted = t }
func Noted() float64        { return noted.Item() }

// only is called by others of the package, with what is there.
type only struct{ t *tensor.Tensor }

func (o *only) set(t *tensor.Tensor) { o.t = t }
func (o *only) Value() float64       { return o.t.Item() }

// NewOnly returns one of host data.
func NewOnly() *only {
	o := new(only)
	o.set(tensor.From([]float32{1}))
	return o
}

// Losses keeps them in the list itself.
type Losses []*tensor.Tensor

func (l *Losses) Add(t *tensor.Tensor) { *l = append(*l, t) }
func (l Losses) Final() float64        { return l[len(l)-1].Item() }

// With makes a longer list, and leaves l as it is.
func (l Losses) With(t *tensor.Tensor) Losses {
	l = append(l, t)
	return l
}

// Curves has lists by name.
type Curves map[string][]*tensor.Tensor

func (c Curves) Add(name string, t *tensor.Tensor) { c[name] = append(c[name], t) }
func (c Curves) Last(name string) float64          { return c[name][len(c[name])-1].Item() }

// Log waits. Next is set again, and Mine by others.
var (
	Log  = func(t *tensor.Tensor) float64 { return t.Item() }
	Next = func(t *tensor.Tensor) float64 { return t.Item() }
	Mine = func(t *tensor.Tensor) float64 { return t.Item() }
)

func SetNext(f func(t *tensor.Tensor) float64) { Next = f }

// A Pair has two of anything.
type Pair[A, B any] struct {
	First  A
	Second B
}

func Both[A, B any](a A, b B) Pair[A, B] { return Pair[A, B]{a, b} }

// Alarm is set by init, Late by init under a condition.
var (
	Alarm = func(t *tensor.Tensor) bool { return false }
	Late  = func(t *tensor.Tensor) bool { return false }
)

func init() {
	Alarm = func(t *tensor.Tensor) bool { return t.Item() > 1 }
	if noted != nil {
		Late = func(t *tensor.Tensor) bool { return t.Item() > 1 }
	}
}

// Smooth returns a function that adds a tensor and one that reads the mean.
func Smooth() (add func(t *tensor.Tensor), value func() float64) {
	mean := tensor.Ones(1)
	return func(t *tensor.Tensor) { mean = mean.Add(t) }, func() float64 { return mean.Item() }
}

// Count counts, and never waits.
func Count() (value func() float64, add func(t *tensor.Tensor), n func() int) {
	count, mean := 0, tensor.Ones(1)
	value = func() float64 { return mean.Item() }
	return value, func(t *tensor.Tensor) { mean = mean.Add(t); count++ }, func() int { return count }
}

// A Metric is one of three, which read in different ways what they are given. A Loss need not wait.
type Metric interface {
	Of(x, y *tensor.Tensor) float64
}

type Loss interface {
	Loss(x, y *tensor.Tensor) float64
}

type (
	Share struct{}
	Worst struct{}
	First struct{}
)

func (Share) Of(x, y *tensor.Tensor) float64 { return x.Sub(y).Mean().Item() }
func (Worst) Of(x, y *tensor.Tensor) float64 { return x.Sub(y).Max().Item() }
func (First) Of(x, y *tensor.Tensor) float64 { return x.At(0) }

func (Share) Loss(x, y *tensor.Tensor) float64 { return x.Sub(y).Mean().Item() }
func (First) Loss(x, y *tensor.Tensor) float64 { return float64(x.Dim(0)) }

// Fit takes n steps, each from the one before. Filter goes over data.
func Fit(x *tensor.Tensor, n int) *tensor.Tensor {
	c := x
	for range n {
		c = c.Add(x.Sub(c).MulScalar(0.1))
	}
	return c
}

func Filter(x *tensor.Tensor, n int) *tensor.Tensor {
	c := x
	for range n {
		c = c.Add(x.Sub(c).MulScalar(0.1))
	}
	return c
}

func Fits(xs []*tensor.Tensor) *tensor.Tensor {
	c := xs[0]
	for _, x := range xs {
		c = c.Add(x)
	}
	return c
}

// An Item has the score that it was made with.
type Item struct {
	ID    int
	score *tensor.Tensor
}

func NewItem(id int, score *tensor.Tensor) *Item { return &Item{id, score} }
func (i *Item) Score() float64                   { return i.score.Item() }
func (i *Item) Raw() *tensor.Tensor              { return i.score }

// A Scale formats itself by what it computes, a Label by what it has, and a Seen by what it was given.
type (
	Scale struct{ w *tensor.Tensor }
	Label struct{ name string }
	Seen  struct{ w *tensor.Tensor }
)

func (s *Scale) String() string { return fmt.Sprintf("%.3f", s.w.MulScalar(2).Max().Item()) }
func (l *Label) String() string { return l.name }
func (s *Seen) String() string  { return fmt.Sprintf("%.3f", s.w.Item()) }

// A Model steps by a function that New sets; Ready has one of another kind, and Other is for others to set.
type Model struct {
	Step, Ready, Other func(x *tensor.Tensor) float64
}

func NewModel(w *tensor.Tensor) *Model {
	return &Model{
		Step:  func(x *tensor.Tensor) float64 { return x.MatMul(w).Item() },
		Ready: func(x *tensor.Tensor) float64 { return float64(x.Dim(0)) },
	}
}

// A Walker waits in each step, and a Runner walks as it does.
type Walker struct{ w *tensor.Tensor }

func (w *Walker) Walk(x *tensor.Tensor) float64 { return x.MatMul(w.w).Mean().Item() }

type Runner struct {
	Walker
	Fast bool
}

// A Swimmer waits, and a Diver, which embeds one, doesn't.
type Swimmer struct{ w *tensor.Tensor }

func (s *Swimmer) Swim(x *tensor.Tensor) float64 { return x.MatMul(s.w).Mean().Item() }

type Diver struct{ Swimmer }

func (d *Diver) Swim(x *tensor.Tensor) float64 { return float64(x.Dim(0)) }

// A Registry keeps boxes by name, and prints what is in them.
type Registry struct {
	boxes map[string]*Box[*tensor.Tensor]
}

func (r *Registry) Box(name string) *Box[*tensor.Tensor] { return r.boxes[name] }

func (r *Registry) String() string {
	s := ""
	for name, b := range r.boxes {
		s += fmt.Sprint(name, b.Take())
	}
	return s
}

// A Behind adds up values, each when the next one has been enqueued.
type Behind struct {
	last  *tensor.Tensor
	total float64
}

func (b *Behind) Push(x *tensor.Tensor) {
	if b.last != nil {
		b.total += b.last.Item()
	}
	b.last = x
}

// An Ahead reads what it has just been given.
type Ahead struct {
	last  *tensor.Tensor
	total float64
}

func (a *Ahead) Push(x *tensor.Tensor) {
	a.last = x
	a.total += a.last.Item()
}
