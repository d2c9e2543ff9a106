// Package trainers calls functions that others have given it.
package trainers

import (
	"net"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Trainer trains w.
type Trainer struct {
	// Each is called in each step, Every now and then and Pass after each epoch.
	Each, Every, Pass func(i int, loss *tensor.Tensor)
	// Seen is called with each batch, before the step, and Until asked after it.
	Seen  func(batch *tensor.Tensor)
	Until func(loss *tensor.Tensor) bool
	// Watchers are called in each step, and Rated asked.
	Watchers []Watcher
	Rated    func(loss *tensor.Tensor) float64

	w      *tensor.Tensor
	opt    *optim.Optimizer
	state  State
	hooks  []func(loss *tensor.Tensor)
	passes []func(loss *tensor.Tensor)
	last   func(loss *tensor.Tensor)
	states []func(s *State)
	events map[string][]func(loss *tensor.Tensor)
	thin   []func(loss *tensor.Tensor)
	beside []func(loss *tensor.Tensor)
	seldom []func(loss *tensor.Tensor)
}

// A State is how far a trainer is.
type State struct {
	Step int
	Loss *tensor.Tensor
}

// A Watcher is called in each step.
type Watcher func(i int, loss *tensor.Tensor)

// An Option changes a trainer.
type Option func(*Trainer)

// WithHook has f called in each step, WithPass after each epoch.
func WithHook(f func(loss *tensor.Tensor)) Option {
	return func(t *Trainer) { t.hooks = append(t.hooks, f) }
}
func WithPass(f func(loss *tensor.Tensor)) Option {
	return func(t *Trainer) { t.passes = append(t.passes, f) }
}

// New makes a trainer.
func New(opt *optim.Optimizer, options ...Option) *Trainer {
	t := &Trainer{opt: opt}
	for _, o := range options {
		o(t)
	}
	return t
}

// Hook, State and Name have f called in each step; Name by its name, Thin in every tenth and Beside on a goroutine.
func (t *Trainer) Hook(f func(loss *tensor.Tensor))   { t.hooks = append(t.hooks, f) }
func (t *Trainer) State(f func(s *State))             { t.states = append(t.states, f) }
func (t *Trainer) Beside(f func(loss *tensor.Tensor)) { t.beside = append(t.beside, f) }
func (t *Trainer) Name(name string, f func(loss *tensor.Tensor)) {
	t.events[name] = append(t.events[name], f)
}
func (t *Trainer) Thin(f func(loss *tensor.Tensor)) {
	n := 0
	t.thin = append(t.thin, func(loss *tensor.Tensor) {
		if n++; n%10 == 0 {
			f(loss)
		}
	})
}

// Seldom has f called in every hundredth step.
func (t *Trainer) Seldom(f func(loss *tensor.Tensor)) { t.seldom = append(t.seldom, f) }

// Last has f called at the end.
func (t *Trainer) Last(f func(loss *tensor.Tensor)) { t.last = f }

func call(list []func(loss *tensor.Tensor), loss *tensor.Tensor) {
	for _, f := range list {
		f(loss)
	}
}

func callSeldom(list []func(loss *tensor.Tensor), i int, loss *tensor.Tensor) {
	if i%100 == 0 {
		for _, f := range list {
			f(loss)
		}
	}
}

func (t *Trainer) step(i int, b *tensor.Tensor) {
	t.state.Loss = b.MatMul(t.w).Mean()
	t.state.Step = i
	t.opt.Minimize(t.state.Loss)
	call(t.hooks, t.state.Loss)
	call(t.thin, t.state.Loss)
	callSeldom(t.seldom, i, t.state.Loss)
	call(t.events["step"], t.state.Loss)
	for _, f := range t.states {
		f(&t.state)
	}
	for _, f := range t.beside {
		go f(t.state.Loss)
	}
	for _, f := range t.Watchers {
		f(i, t.state.Loss)
	}
}

// Train trains.
func (t *Trainer) Train(batches []*tensor.Tensor, epochs int) (rate float64) {
	for epoch := range epochs {
		for i, b := range batches {
			t.Seen(b)
			t.step(i, b)
			if t.Each != nil {
				t.Each(i, t.state.Loss)
			}
			if i%100 == 0 {
				t.Every(i, t.state.Loss)
			}
			if rate = t.Rated(t.state.Loss); rate > 9 {
				return rate
			}
			if t.Until(t.state.Loss) {
				return rate
			}
		}
		call(t.passes, t.state.Loss)
		call(t.events["epoch"], t.state.Loss)
		t.Pass(epoch, t.state.Loss)
	}
	t.last(t.state.Loss)
	return rate
}

// A World is a simulation, of which others see each frame.
type World struct{ frames []func(u *tensor.Tensor) }

func (w *World) Frames(f func(u *tensor.Tensor)) { w.frames = append(w.frames, f) }

// Run runs it.
func (w *World) Run(u *tensor.Tensor, n int) {
	for range n {
		u = u.Add(u.MulScalar(3))
		for _, f := range w.frames {
			f(u)
		}
	}
}

// A Server answers.
type Server struct{ answered func(y *tensor.Tensor) }

func (s *Server) Answered(f func(y *tensor.Tensor)) { s.answered = f }

// Serve answers what comes.
func (s *Server) Serve(c net.Conn, x *tensor.Tensor) {
	buf := make([]byte, 8)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
		s.answered(x.MulScalar(float64(buf[0])))
	}
}

// A Replay shows losses again, if somebody wants to see them.
type Replay struct {
	verbose bool
	shown   func(loss *tensor.Tensor)
}

func (r *Replay) Shown(f func(loss *tensor.Tensor)) { r.shown = f }

func (r *Replay) Run(xs []*tensor.Tensor) {
	if r.verbose {
		for _, x := range xs {
			r.shown(x.Mean())
		}
	}
}

// A Viewer sees the losses of Show.
type Viewer interface{ View(loss *tensor.Tensor) }

// A ViewFunc is one.
type ViewFunc func(loss *tensor.Tensor)

func (f ViewFunc) View(loss *tensor.Tensor) { f(loss) }

// Show shows losses.
func Show(xs []*tensor.Tensor, v Viewer) {
	for _, x := range xs {
		v.View(x.Mean())
	}
}

// A Sink gets the losses of Drain.
type Sink interface {
	Put(loss *tensor.Tensor) error
}

// Drain shows n losses, or all.
func Drain(n int, next func() (x *tensor.Tensor, ok bool), s Sink) error {
	for range n {
		x, ok := next()
		if !ok {
			return nil
		}
		if err := put(s, x.Mean()); err != nil {
			return err
		}
	}
	return nil
}

func put(s Sink, loss *tensor.Tensor) error { return s.Put(loss) }

// Try calls f until it succeeds.
func Try(n int, f func() error) (err error) {
	for range n {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

// A Sweep calls AtEpoch after each Pass.
type Sweep struct {
	Pass    func(i int) *tensor.Tensor
	AtEpoch func(loss *tensor.Tensor)
}

// Run runs it.
func (s *Sweep) Run(n int) {
	for i := range n {
		s.AtEpoch(s.Pass(i))
	}
}

// Each calls f for each of xs.
func Each(xs []*tensor.Tensor, f func(loss *tensor.Tensor)) {
	for _, x := range xs {
		f(x.Mean())
	}
}

// A Metric measures. Measure adds up what some measure, and looks at what others do.
type Metric func(pred, y *tensor.Tensor) float64

// Announce is called in each step of Measure, and AnnounceAll at its end.
var (
	Announce    = func(step int, loss *tensor.Tensor) {}
	AnnounceAll = func(loss *tensor.Tensor) {}
)

// A Bench measures by name.
type Bench struct {
	metrics map[string]Metric
	judges  map[string]func(pred, y *tensor.Tensor) float64
	sums    map[string]float64
}

func (b *Bench) Metric(name string, m Metric)                              { b.metrics[name] = m }
func (b *Bench) Judge(name string, f func(pred, y *tensor.Tensor) float64) { b.judges[name] = f }

// Measure measures how good w is.
func (b *Bench) Measure(xs []*tensor.Tensor, w *tensor.Tensor) int {
	for i, x := range xs {
		pred := x.MatMul(w)
		for name, m := range b.metrics {
			b.sums[name] += m(pred, x)
		}
		for _, f := range b.judges {
			if f(pred, x) > 0.5 {
				return i
			}
		}
		Announce(i, pred)
	}
	AnnounceAll(w.Mean())
	return len(xs)
}

// A Stage changes a batch. Others make stages of stages.
type Stage func(x *tensor.Tensor) *tensor.Tensor

// A Pipe has stages, which it calls for each batch, and a last one for the end.
type Pipe struct {
	stages []Stage
	steps  []func(x *tensor.Tensor) *tensor.Tensor
	last   func(x *tensor.Tensor) *tensor.Tensor
}

func (p *Pipe) Then(f func(x *tensor.Tensor) *tensor.Tensor)  { p.steps = append(p.steps, f) }
func (p *Pipe) AtEnd(f func(x *tensor.Tensor) *tensor.Tensor) { p.last = f }

// Run sends batches through.
func (p *Pipe) Run(xs []*tensor.Tensor, w *tensor.Tensor) (all []*tensor.Tensor) {
	for _, x := range xs {
		x = x.MatMul(w)
		for _, f := range p.stages {
			x = f(x)
		}
		for _, f := range p.steps {
			x = f(x)
		}
		all = append(all, x)
	}
	return append(all, p.last(w.Mean()))
}

// A Table has a row for each step.
type Table[T any] struct {
	Of   func(loss *tensor.Tensor) T
	rows []T
}

func (t *Table[T]) Fill(xs []*tensor.Tensor) []T {
	for _, x := range xs {
		t.rows = append(t.rows, t.Of(x.Mul(x).Sum()))
	}
	return t.rows
}

// A Follower is told of each step of Follow.
type Follower interface{ OnStep(loss *tensor.Tensor) }

func Follow(xs []*tensor.Tensor, f Follower) {
	for _, x := range xs {
		f.OnStep(x.Mean())
	}
}
