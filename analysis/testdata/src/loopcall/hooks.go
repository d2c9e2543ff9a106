package loopcall

import (
	"fmt"
	"maps"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A loop over hooks calls all of them.

type hook func(step int, loss *tensor.Tensor)

type recorder interface {
	Record(step int, loss *tensor.Tensor)
}

type trainer struct {
	hooks     []hook
	named     map[string]hook
	recorders []recorder
	observers []batch.Observer
	stages    []stage
	losses    []float64
	opt       *optim.Optimizer
}

type stage struct {
	name string
	done func(loss *tensor.Tensor)
}

type table struct{ rows []string }

func (t *table) Record(step int, loss *tensor.Tensor) {
	t.rows = append(t.rows, fmt.Sprint(step, loss.Item()))
}
func (t *table) Observe(loss *tensor.Tensor) { t.rows = append(t.rows, fmt.Sprint(loss)) }

type silent struct{}

func (silent) Record(step int, loss *tensor.Tensor) {}
func (silent) Observe(loss *tensor.Tensor)          {}

type seldomTable struct{}

func (seldomTable) Record(step int, loss *tensor.Tensor) {
	if step%100 == 0 {
		fmt.Println(loss)
	}
}
func (seldomTable) Observe(loss *tensor.Tensor) {}

type other interface {
	Record(step int, loss *tensor.Tensor)
}

func showStep(step int, loss *tensor.Tensor) { fmt.Println(step, loss) }

func seldomStep(step int, loss *tensor.Tensor) {
	if step%50 == 0 {
		fmt.Println(loss)
	}
}

func record(to *[]float64) hook {
	return func(step int, loss *tensor.Tensor) { *to = append(*to, loss.Item()) }
}

func passed(data []Batch, hooks ...hook) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, h := range hooks {
			h(i, loss) // showStep prints in each iteration, and is what AT004 reports
		}
	}
}

func passedRare(data []Batch, hooks []hook) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, h := range hooks {
			h(i, loss)
		}
	}
}

func callers(data []Batch, t *trainer) {
	passed(data, seldomStep, showStep)
	passedRare(data, []hook{seldomStep})
	t.add(func(step int, loss *tensor.Tensor) { t.losses = append(t.losses, loss.Item()) })
	t.named = map[string]hook{"none": nil, "seldomStep": seldomStep}
	t.named["all"] = record(&t.losses)
	t.recorders = []recorder{silent{}, &table{}}
	t.watch(&table{})
	t.stages = append(t.stages, stage{"first", func(loss *tensor.Tensor) { fmt.Println(loss) }}, stage{name: "second"})
}

func (t *trainer) add(h hook)             { t.hooks = append(t.hooks, h) }
func (t *trainer) watch(o batch.Observer) { t.observers = append(t.observers, o) }

func (t *trainer) train(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		t.opt.Minimize(loss)
		for _, h := range t.hooks {
			h(i, loss) // want `h waits for the device in each iteration \(loss.Item\(\) at hooks.go:94\)`
		}
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, h := range t.named {
			if h != nil {
				h(i, loss) // want `h waits`
			}
		}
		for name := range t.named {
			t.named[name](i, loss) // want `t.named\[name\] waits`
		}
		for h := range maps.Values(t.named) {
			h(i, loss) // want `h waits`
		}
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, r := range t.recorders {
			r.Record(i, loss) // reported where it waits: not all do
		}
		for j := range t.recorders {
			t.recorders[j].Record(i, loss) // likewise
		}
	}
	for _, b := range data {
		loss := batch.Loss(w, b)
		for _, o := range t.observers {
			o.Observe(loss) // want `o.Observe waits`
		}
		for _, s := range t.stages {
			if s.done != nil {
				s.done(loss) // want `s.done waits`
			}
		}
	}
}

func inLocal(data []Batch, losses *[]float64, given []other) {
	hooks := []hook{seldomStep, record(losses)}
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, h := range hooks {
			h(i, loss) // want `h waits`
		}
	}
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, r := range given {
			r.Record(i, loss) // reported where it waits: not all do
		}
	}
}

func quietHooks(data []Batch, losses *[]float64, pick string) {
	hooks := []hook{seldomStep, seldomStep}
	all := []recorder{silent{}, seldomTable{}}
	for i, b := range data {
		loss := batch.Loss(w, b)
		for _, h := range hooks {
			h(i, loss)
		}
		for _, r := range all {
			r.Record(i, loss)
		}
		if i%10 == 0 {
			for _, h := range []hook{showStep} {
				h(i, loss)
			}
		}
	}
	kinds := map[string]hook{"showStep": showStep, "seldomStep": seldomStep}
	for i, b := range data {
		kinds[pick](i, batch.Loss(w, b)) // one of them, nobody knows which
	}
	for range 10 {
		var last *tensor.Tensor
		for _, b := range data {
			last = batch.Loss(w, b)
		}
		for _, h := range []hook{showStep, record(losses)} {
			h(0, last)
		}
	}
}

// What another package calls for each of its arguments.
func elsewhere(data []Batch) {
	batch.EachStep(w, data, seldomStep, showStep) // want `blocking call in loop: showStep waits`
	batch.Last(w, data, seldomStep, showStep)
}

// Options are applied once.
type option func(*trainer)

func warm(x *tensor.Tensor) option {
	return func(t *trainer) { t.losses = append(t.losses, x.Mean().Item()) }
}

func newTrainer(opts ...option) *trainer {
	t := new(trainer)
	for _, o := range opts {
		o(t)
	}
	return t
}

func warmed() *trainer { return newTrainer(warm(w)) }

// job is something that works and waits by itself, whichever it is.
type job interface{ Run() float64 }

type one struct{}

func (one) Run() float64 { return w.AddScalar(1).Item() }

type two struct{}

func (two) Run() float64 { return w.AddScalar(2).Item() }

func runJobs(jobs []job) (total float64) {
	for _, j := range jobs {
		total += j.Run() // want `j.Run waits`
	}
	return total
}

// A field that is set to a method with its receiver.

type sums struct{ total float64 }

func (s *sums) note(step int, loss *tensor.Tensor)  { s.total += loss.Item() }
func (s *sums) count(step int, loss *tensor.Tensor) { s.total++ }

type notedTrainer struct {
	hook, counter func(int, *tensor.Tensor)
	seen          *tensor.Tensor
}

func newNotedTrainer(s *sums) *notedTrainer { return &notedTrainer{hook: s.note, counter: s.count} }

func (t *notedTrainer) run(data []Batch) {
	for i, b := range data {
		loss := batch.Loss(w, b)
		t.hook(i, loss) // want `t.hook waits for the device in each iteration`
		t.counter(i, loss)
		t.seen = loss
	}
}
