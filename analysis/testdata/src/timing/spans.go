package timing

import (
	"log"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A span is a stopwatch of the program's own.
type span struct {
	name  string
	start time.Time
}

func begin(name string) *span { return &span{name, time.Now()} }

func (s *span) end() { log.Println(s.name, time.Since(s.start)) }

func spans(x *tensor.Tensor) *tensor.Tensor {
	a := span{"first", time.Now()}
	x = x.MatMul(w)
	a.end() // want `a.end`
	b := begin("second")
	x = x.MatMul(w)
	b.end() // want `b.end`
	c := begin("third")
	x = x.MatMul(w)
	x.Wait()
	c.end()
	return x
}

type stopwatch struct{ start time.Time }

func (s *stopwatch) begin()                 { s.start = time.Now() }
func (s *stopwatch) elapsed() time.Duration { return time.Since(s.start) }

func watched(x *tensor.Tensor) (a, b, c time.Duration) {
	var s stopwatch
	s.begin()
	y := x.MatMul(w)
	a = s.elapsed() // want `s.elapsed tells`
	y.Wait()
	s.begin()
	y = x.MatMul(w)
	y.Wait()
	b = s.elapsed()
	y.MatMul(w)
	s.begin()
	c = s.elapsed()
	return a, b, c
}

func loads(load func() []*tensor.Tensor, n int) (loading time.Duration) {
	start := time.Now()
	for range n {
		t0 := time.Now()
		xs := load()
		loading += time.Since(t0)
		xs[0].MatMul(w)
	}
	log.Print(time.Since(start)) // want `AT020`
	return loading
}
