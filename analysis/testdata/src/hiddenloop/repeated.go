package hiddenloop

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"stepping"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Implementations of a method that a loop calls: the loop is right for those that don't wait.

type metric interface {
	update(pred, want *tensor.Tensor)
	result() float64
}

type onDevice struct{ sum *tensor.Tensor }

func (m *onDevice) update(pred, want *tensor.Tensor) {
	m.sum = m.sum.Add(pred.Sub(want).Square().Sum())
}
func (m *onDevice) result() float64 { return m.sum.Item() } // silent: when somebody asks

type onHost struct{ sum float64 }

func (m *onHost) update(pred, want *tensor.Tensor) {
	m.sum += pred.Sub(want).Square().Sum().Item() // want `hidden loop: pred.Sub\(want\).Square\(\).Sum\(\).Item\(\) waits for the device each time`
}
func (m *onHost) result() float64 { return m.sum }

type everyTenth struct {
	n   int
	sum float64
}

func (m *everyTenth) update(pred, want *tensor.Tensor) {
	if m.n++; m.n%10 == 0 {
		m.sum += pred.Sub(want).Square().Sum().Item() // silent: a tenth
	}
}
func (m *everyTenth) result() float64 { return m.sum }

func evaluate(batches []*tensor.Tensor, ms []metric) {
	for _, x := range batches {
		pred := x.MatMul(w)
		for _, m := range ms {
			m.update(pred, x) // reported where it waits
		}
	}
	for _, m := range ms {
		fmt.Println(m.result())
	}
}

// Functions that one field may hold.

type simulation struct {
	x    *tensor.Tensor
	tick func(step int, e *tensor.Tensor)
}

func (s *simulation) run(n int) {
	for i := range n {
		s.x = s.x.MatMul(w)
		s.tick(i, s.x)
	}
}

func (s *simulation) trace(kept *[]*tensor.Tensor) {
	s.tick = func(_ int, e *tensor.Tensor) { *kept = append(*kept, e.Mean()) }
}

func (s *simulation) watch(every int) {
	s.tick = func(step int, e *tensor.Tensor) {
		mean := e.Mean().Item() // want `hidden loop: e.Mean\(\).Item\(\) waits for the device each time`
		s.plot(step, mean)
	}
	s.tick = func(step int, e *tensor.Tensor) {
		if step%every == 0 {
			s.plot(step, e.Mean().Item()) // silent: every so many steps
		}
	}
}

func (s *simulation) plot(int, float64) {}

// What a function type may stand for.

type transform func(x *tensor.Tensor) *tensor.Tensor

func brighten(by float64) transform {
	return func(x *tensor.Tensor) *tensor.Tensor { return x.AddScalar(by) }
}

func spread() transform {
	return func(x *tensor.Tensor) *tensor.Tensor {
		m := x.Max().Item() // want `hidden loop: x.Max\(\).Item\(\) waits for the device each time`
		if m > 0.5 {
			log.Println(m)
		}
		return x
	}
}

func augmented(xs []*tensor.Tensor, ts ...transform) (out []*tensor.Tensor) {
	for _, x := range xs {
		y := x.MatMul(w)
		for _, t := range ts {
			y = t(y)
		}
		out = append(out, y)
	}
	return out
}

// Hooks of a package that calls them in its loop.

type meter struct {
	mean, last float64
}

func (m *meter) OnStep(_ int, loss *tensor.Tensor) {
	m.mean = 0.9*m.mean + 0.1*loss.Item() // want `hidden loop: loss.Item\(\) waits for the device each time`
}

func (m *meter) OnEpoch(_ int, loss *tensor.Tensor) { m.last = loss.Item() } // silent: once per epoch

var _ stepping.Hook = (*meter)(nil)

// Methods that add to a field.

type Meter struct {
	sum  float64
	n    int
	best float64
	kept []float64
	log  []string
	all  []*tensor.Tensor
}

func (m *Meter) Add(loss *tensor.Tensor) {
	m.sum += loss.Item() // want `hidden loop: loss.Item\(\) waits for the device each time`
	m.n++
}

func (m *Meter) Keep(loss *tensor.Tensor) {
	v := loss.Mean().Item() // want `hidden loop: loss.Mean\(\).Item\(\) waits for the device each time`
	m.kept = append(m.kept, v)
}

func (m *Meter) Best(loss *tensor.Tensor) {
	if v := loss.Item(); v < m.best { // silent: one is kept
		m.best = v
		m.kept = append(m.kept, v)
	}
}

func (m *Meter) Peak(loss *tensor.Tensor) {
	if v := loss.Item(); v > m.best { // want `hidden loop: loss.Item\(\) waits for the device each time`
		m.best = v
	}
}

func (m *Meter) Range(loss *tensor.Tensor) {
	v := loss.Item() // want `hidden loop: loss.Item\(\) waits for the device each time`
	if v > m.best {
		m.best = v
	}
	if v < m.sum {
		m.sum = v
	}
}

func (m *Meter) Clipped(norm *tensor.Tensor) {
	if norm.Item() > 5 { // want `hidden loop: norm.Item\(\) waits for the device each time`
		m.n++
	}
}

func (m *Meter) Alarm(norm *tensor.Tensor) {
	if norm.Item() > m.best { // silent: it counts until it acts
		m.n++
	}
	if m.n > 3 {
		panic("no progress")
	}
}

type confusion struct {
	cells [10][10]int
	last  [10]int64
}

func (c *confusion) Update(pred, y *tensor.Tensor) {
	p := pred.Int64s() // want `hidden loop: pred.Int64s\(\) waits for the device each time`
	for i := range p {
		c.cells[p[i]][i]++
	}
}

func (c *confusion) Remember(pred *tensor.Tensor) { c.last[0] = pred.Int64s()[0] } // silent: it keeps the last

func (m *Meter) Improve(loss *tensor.Tensor) bool {
	v := loss.Item() // silent: who calls it is told
	if v < m.best {
		m.best = v
		return true
	}
	return false
}

func (m *Meter) Patience(loss *tensor.Tensor) {
	if v := loss.Item(); v < m.best { // silent: it counts how often it didn't get better
		m.best = v
	} else {
		m.n++
	}
}

func (m *Meter) EndEpoch(loss *tensor.Tensor)          { m.sum += loss.Item() } // silent: once per epoch
func (m *Meter) Lazy(loss *tensor.Tensor)              { m.all = append(m.all, loss.Detach()) }
func (m *Meter) Sum() float64                          { m.sum += tensor.Stack(0, m.all...).Sum().Item(); return m.sum } // silent: what has been kept
func (m *Meter) Mean(loss *tensor.Tensor) float64      { return loss.Item() / float64(m.n) }                             // silent: who calls it decides
func (m *Meter) Report(loss *tensor.Tensor)            { m.kept = append(m.kept, loss.Item()) }                          // silent: now and then
func (m *Meter) Write(out io.Writer, x *tensor.Tensor) { fmt.Fprintln(out, x) }                                          // silent: what it is for

// Steps of training without their loop.

type Learner struct {
	opt  *optim.Optimizer
	mean float64
	n    int
}

func (l *Learner) Step(x *tensor.Tensor) float64 {
	loss := x.MatMul(w).Mean()
	l.opt.Minimize(loss)
	return loss.Item() // silent: who calls it decides
}

func (l *Learner) StepSmooth(x *tensor.Tensor) {
	loss := x.MatMul(w).Mean()
	l.opt.Minimize(loss)
	l.mean = 0.9*l.mean + 0.1*loss.Item() // want `hidden loop: loss.Item\(\) waits for the device each time`
}

func (l *Learner) StepNow(x *tensor.Tensor, out http.ResponseWriter, _ *http.Request) {
	loss := x.MatMul(w).Mean()
	l.opt.Minimize(loss)
	fmt.Fprintln(out, loss) // silent: the answer
}

// A name can tell that a method is called after each step.

type alarm struct {
	mean float64
	high int
}

func (a *alarm) OnStep(step int, loss *tensor.Tensor) {
	v := loss.Item() // want `blocking read in hidden loop`
	if v > 3*a.mean {
		a.high++
	}
	a.mean = 0.9*a.mean + 0.1*v
}

func (a *alarm) OnEpoch(epoch int, loss *tensor.Tensor) {
	a.mean = loss.Item()
}

func (a *alarm) AfterBatch(i int, loss *tensor.Tensor) {
	if i%100 == 0 {
		a.mean = loss.Item()
	}
}

// Hooks that others may ask for.

type watcher func(loss *tensor.Tensor)

type watched struct{ observers []watcher }

func (o *watched) run(xs []*tensor.Tensor) {
	o.observers = append(o.observers, func(loss *tensor.Tensor) { w = loss })
	for _, x := range xs {
		loss := x.MatMul(w)
		for _, f := range o.observers {
			f(loss)
		}
	}
}

func Highest(top *float64) watcher {
	return func(loss *tensor.Tensor) {
		*top = max(*top, loss.Item()) // want `hidden loop: loss.Item\(\) waits for the device each time`
	}
}

func Tell(every int) watcher {
	n := 0
	return func(loss *tensor.Tensor) {
		if n++; n%100 == 0 {
			fmt.Println(loss.Item())
		}
	}
}
