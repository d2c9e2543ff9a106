package lockedread

import (
	"fmt"
	"log"
	"slices"
	"sync"

	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type stats struct {
	mu    sync.Mutex
	rw    sync.RWMutex
	sum   *tensor.Tensor
	host  *tensor.Tensor
	total float64
}

var global sync.Mutex

func (s *stats) add(loss *tensor.Tensor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += loss.Item() // want `wait under lock: loss.Item\(\) waits for the device while s.mu is locked; take the tensor and wait without the lock \[AT011\]`
	s.sum = s.sum.Add(loss)
}

func (s *stats) value() float64 {
	s.rw.RLock()
	v := s.sum.Item() // want `while s.rw is locked`
	s.rw.RUnlock()
	return v + s.sum.Item()
}

func (s *stats) forms(x *tensor.Tensor) {
	global.Lock()
	y := x.AddScalar(1)
	fmt.Println(y) // want `fmt.Println waits for the device while global is locked`
	y = x.AddScalar(2)
	y.Wait()              // want `y.Wait\(\) waits for the device while global`
	asyncrt.WaitAll()     // want `asyncrt.WaitAll\(\) waits`
	batch.Value(x.Add(x)) // want `batch.Value waits for the device \(t.Item\(\) at batch.go:\d+\) while global is locked`
	global.Unlock()
	y = x.AddScalar(3)
	fmt.Println(y)
}

func (s *stats) paths(x *tensor.Tensor, quick bool) float64 {
	s.mu.Lock()
	if quick {
		s.mu.Unlock()
		return x.Item()
	}
	for range 3 {
		s.total += x.AddScalar(1).Item() // want `AT011`
	}
	s.mu.Unlock()
	return s.total
}

func (s *stats) literals(xs []*tensor.Tensor) {
	var l sync.Locker = &s.mu
	l.Lock()
	func() {
		s.total += xs[0].Item() // want `while l is locked`
	}()
	slices.IndexFunc(xs, func(x *tensor.Tensor) bool {
		return x.Add(x).Item() > 0 // want `while l is locked`
	})
	l.Unlock()
	var wg sync.WaitGroup
	for _, x := range xs {
		wg.Go(func() {
			y := x.AddScalar(1)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.total += y.Item() // want `AT011`
		})
	}
	wg.Wait()
}

type embedded struct {
	sync.Mutex
	loss *tensor.Tensor
}

func (e *embedded) step(x *tensor.Tensor) float64 {
	e.Lock()
	defer e.Unlock()
	e.loss = x.Mean()
	return e.loss.Item() // want `while e is locked`
}

type record struct {
	mu   sync.Mutex
	last *tensor.Tensor
	all  map[string]*tensor.Tensor
	own  []*tensor.Tensor // set by others
}

func (r *record) observe(name string, loss *tensor.Tensor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = loss
	r.all[name] = loss
}

func (r *record) show() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, loss := range r.all {
		fmt.Println(name, loss) // want `fmt.Println waits for the device while r.mu is locked`
	}
	return r.own[0].Item() + r.last.Item() // want `r.own\[0\].Item` `r.last.Item`
}

// Silent from here on.

func (s *stats) before(loss *tensor.Tensor) {
	v := loss.Item()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += v + loss.Item()
}

func (s *stats) copies() float64 {
	s.mu.Lock()
	sum := s.sum
	s.mu.Unlock()
	return sum.Item()
}

func (s *stats) hostMade(data []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = tensor.From(data)
	s.total = s.host.Item() + float64(s.sum.Dim(0))
	s.sum = s.sum.Add(s.host)
	go s.sum.Item()
	defer fmt.Println("later")
}

func (s *stats) maybe(x *tensor.Tensor, lock bool) float64 {
	if lock {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	return x.Item()
}

func (s *stats) rare(x *tensor.Tensor, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		log.Println(x, err)
	}
}

func (s *stats) release() { s.mu.Unlock() }

func (s *stats) lock() (unlock func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

func (s *stats) indirect(x *tensor.Tensor) (v float64) {
	s.mu.Lock()
	s.release()
	v += x.Item()

	s.mu.Lock()
	p := &s.mu
	p.Unlock()
	v += x.Item()

	unlock := s.lock()
	s.rw.Lock()
	unlock()
	v += x.Item()

	s.mu.Lock()
	func() { s.mu.Unlock() }()
	v += x.Item()

	s.mu.Lock()
	later := func() float64 { return x.Item() }
	s.mu.Unlock()
	v += later()

	s.mu.Lock()
	v += x.Item() //asyncgen:ignore AT011 nobody else is there yet
	s.mu.Unlock()
	return v
}

func (s *stats) again(xs []*tensor.Tensor) {
	for _, x := range xs {
		v := x.Mean().Item()
		s.mu.Lock()
		s.total += v
		s.mu.Unlock()
	}
	for {
		s.mu.Lock()
		if len(xs) == 0 {
			s.mu.Unlock()
			break
		}
		x := xs[0]
		xs = xs[1:]
		s.mu.Unlock()
		s.total += x.Item()
	}
}

// Nobody waits for a lock that is only ever locked for reading.
type published struct {
	mu   sync.RWMutex
	rows *tensor.Tensor
}

func (p *published) norm(q *tensor.Tensor) float64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.rows.MatMul(q).Norm().Item() // want `while p.mu is locked`
}
