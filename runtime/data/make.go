package data

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A room is where the samples of one batch are put together.
type room interface {
	// fill reads a sample into its place in the batch. Goroutines may fill different places at the same time.
	fill(place, sample int) error
	// tensors makes tensors of the memory, which belongs to them from then on.
	tensors(dev device.Device) Batch
}

// rooms returns a function that makes rooms for n samples of set, up to the given number.
func rooms[X, Y device.Element](set Dataset[X, Y], most int) func(n int) room {
	x, y := set.Shapes()
	x, y = slices.Clone(x), slices.Clone(y)
	for _, shape := range [][]int{x, y} {
		if size(append([]int{max(most, 1)}, shape...)) < 0 {
			wrong("NewLoader", "there is no batch of %d samples of shape %v", most, shape)
		}
	}
	nx, ny := size(x), size(y)
	return func(n int) room {
		return &memory[X, Y]{set, x, y, nx, ny, make([]X, n*nx), make([]Y, n*ny), n}
	}
}

type memory[X, Y device.Element] struct {
	set            Dataset[X, Y]
	shapeX, shapeY []int
	nx, ny         int // elements of a sample
	x              []X
	y              []Y
	n              int
}

func (m *memory[X, Y]) fill(place, sample int) error {
	x, y := place*m.nx, place*m.ny
	return m.set.At(sample, m.x[x:x+m.nx:x+m.nx], m.y[y:y+m.ny:y+m.ny])
}

func (m *memory[X, Y]) tensors(dev device.Device) Batch {
	return Batch{
		X: tensor.Adopt(dev, m.x, append([]int{m.n}, m.shapeX...)...),
		Y: tensor.Adopt(dev, m.y, append([]int{m.n}, m.shapeY...)...),
	}
}

// A maker makes the batches of one loop. The goroutine of the loop decides which batches are in the making, and takes
// them in order. Workers fill parts of them, in any order: the batches do not depend on who fills what.
type maker struct {
	l       *Loader
	order   []int   // of the samples; nil: as they come
	at, end int     // the places in order of what nobody makes yet
	batches []*task // in the making or made, in order
	parts   chan part
	workers sync.WaitGroup
	stopped atomic.Bool // nobody wants what is still in parts
}

// A task is a batch in the making.
type task struct {
	order []int         // of the maker
	at, n int           // the places in it
	room  func() room   // the same each time, made by the first worker
	left  atomic.Int64  // parts that are not filled
	done  chan struct{} // closed when batch is there, or err
	close func()        // closes done
	batch Batch

	mu     sync.Mutex // guards the rest
	failed int        // the first place that failed
	err    error      // why; a *panicked if the dataset panicked
}

// sample returns the number of the sample at a place of the batch.
func (t *task) sample(place int) int {
	if t.order == nil {
		return t.at + place
	}
	return t.order[t.at+place]
}

// wants reports whether the sample at a place matters: the error of the batch is that of the first one that fails.
func (t *task) wants(place int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil || place < t.failed
}

func (t *task) fail(place int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil || place < t.failed {
		t.failed, t.err = place, err
	}
}

// A part is the places from lo to hi of a batch.
type part struct {
	t      *task
	lo, hi int
}

// panicked is the value of a panic on a worker, with the stack that is gone.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// start returns a maker at work on the batches from the position on.
func (l *Loader) start() *maker {
	m := &maker{l: l, order: l.order(), end: min(l.Len()*l.batch, l.samples)}
	m.at = min(l.position.Batch*l.batch, m.end)
	ahead := min(l.options.Prefetch, l.Len()-l.position.Batch)
	m.parts = make(chan part, (ahead+1)*m.partsOf(l.batch))
	caller := engine.Caller()
	for range min(l.options.Workers, m.end-m.at) {
		m.workers.Go(func() { engine.ActFor(caller, m.work) })
	}
	for range ahead {
		m.begin()
	}
	return m
}

// partsOf is the number of parts that a batch of n samples is made in: more than there are workers, since some take
// longer.
func (m *maker) partsOf(n int) int { return min(n, 2*m.l.options.Workers) }

// begin hands the next batch, if there is one, to the workers. It doesn't wait: parts has room for all that is begun.
func (m *maker) begin() {
	all := min(m.l.batch, m.end-m.at)
	if all == 0 {
		return
	}
	n := all / m.l.options.Ranks
	parts := m.partsOf(n)
	t := &task{order: m.order, at: m.at + m.l.options.Rank*n, n: n, done: make(chan struct{})}
	t.close = sync.OnceFunc(func() { close(t.done) })
	t.room = sync.OnceValue(func() room { return m.l.room(n) })
	t.left.Store(int64(parts))
	m.at += all
	m.batches = append(m.batches, t)
	for i := range parts {
		m.parts <- part{t, i * n / parts, (i + 1) * n / parts}
	}
}

// wait waits for the next batch, of which there is one. It returns an error if ctx ends first, or has ended.
func (m *maker) wait(ctx context.Context) error {
	m.begin()
	if ctx.Err() == nil {
		select {
		case <-m.batches[0].done:
			return nil
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("data: load a batch: %w", context.Cause(ctx))
}

// next returns the batch that wait has waited for.
func (m *maker) next() (Batch, error) {
	t := m.batches[0]
	m.batches = slices.Delete(m.batches, 0, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.err.(*panicked); ok {
		panic(p)
	}
	return t.batch, t.err
}

// stop ends the workers, and waits for them.
func (m *maker) stop() {
	m.stopped.Store(true)
	close(m.parts)
	m.workers.Wait()
}

func (m *maker) work() {
	for p := range m.parts {
		m.fill(p)
	}
}

// fill reads the samples of a part. Whoever has filled the last part of a batch makes the tensors.
func (m *maker) fill(p part) {
	t, at := p.t, p.lo
	t.try(&at, func() {
		for ; at < p.hi && !m.stopped.Load() && t.wants(at); at++ {
			if err := t.room().fill(at, t.sample(at)); err != nil {
				t.fail(at, fmt.Errorf("data: sample %d: %w", t.sample(at), err))
				return
			}
		}
	})
	if t.left.Add(-1) > 0 {
		return
	}
	if at = 0; t.wants(t.n) && !m.stopped.Load() {
		t.try(&at, func() { t.batch = t.room().tensors(m.l.options.Device) })
	}
	t.close()
}

// try calls f. If that panics, the sample at *at has failed.
func (t *task) try(at *int, f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if value == nil {
			t.fail(*at, &panicked{"the dataset called runtime.Goexit", debug.Stack()})
			t.close() // perhaps no worker is left
			return
		}
		t.fail(*at, &panicked{value, debug.Stack()})
	}()
	f()
	returned = true
}
