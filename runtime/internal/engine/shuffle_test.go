package engine

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// A log records which operations of a kernel ran, in which order.
type log struct {
	mu  sync.Mutex
	ran []int
}

// kernel returns a kernel that adds one and notes the number that is its immediate.
func (l *log) kernel() *device.Kernel {
	return fakeKernel("noted", 1, func(c *device.Command) error {
		l.mu.Lock()
		l.ran = append(l.ran, int(c.Imm[0]))
		l.mu.Unlock()
		return addOne.Body.(*fakeBody).f(c)
	})
}

// shuffledOrders runs 300 operations, on two synchronous devices and one with a queue. They form 30
// chains, with copies between some of them. It returns the order in which those of each device ran.
func shuffledOrders(t *testing.T, seed uint64, channels bool) (orders [3][]int) {
	e := newEngine(t, Options{Mode: Shuffle, Seed: seed, Channels: channels})
	devs := [3]device.Device{newCPU(1), newCPU(1), newGPU(t)}
	var logs [3]log
	var kernels [3]*device.Kernel
	for i := range devs {
		kernels[i] = logs[i].kernel()
	}
	var x [30]*Storage
	for i := range x {
		x[i] = fromFloats(e, devs[i%3], float64(i))
	}
	for n := range 300 {
		i := n * 7 % len(x)
		if n%50 == 49 {
			i = n / 10
			x[i] = e.Copy(x[i], 0, 1, device.Float64, x[i].Device())
			x[(i+1)%len(x)] = e.Copy(x[i], 0, 1, device.Float64, devs[(i+1)%3])
		}
		y := e.NewStorage(x[i].Device(), 8)
		e.Enqueue(&Op{
			Cmd:      device.Command{Kernel: kernels[i%3], N: 1, Imm: [2]uint64{uint64(n)}},
			Operands: [device.MaxOperands]*Storage{y, x[i]},
		})
		x[i] = y
		if n == 200 {
			x[0].Ready()
			x[3].Wait(bg, "read")
		}
	}
	if err := e.WaitAll(bg); err != nil {
		t.Error(err)
	}
	for i := range logs {
		orders[i] = logs[i].ran
	}
	return orders
}

// The same seed gives the same order of execution, also in a bubble of testing/synctest; another seed
// gives another order. A device with a queue keeps program order.
func TestShuffleIsReproducible(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	t.Logf("seed %d", first)
	seen := map[int]bool{}
	for seed := first; seed < first+10; seed++ {
		a, b := shuffledOrders(t, seed, false), shuffledOrders(t, seed, false)
		var inBubble [3][]int
		synctest.Test(t, func(t *testing.T) { inBubble = shuffledOrders(t, seed, true) })
		for i := range a {
			if !slices.Equal(a[i], b[i]) || !slices.Equal(a[i], inBubble[i]) {
				t.Errorf("seed %d, device %d: different orders:\n%v\n%v\nin a bubble:\n%v", seed, i, a[i], b[i], inBubble[i])
			}
			if len(a[i]) != 100 || slices.IsSorted(a[i]) != (i == 2) {
				t.Errorf("seed %d, device %d: %d operations in order %v", seed, i, len(a[i]), a[i])
			}
		}
		key := 0
		for place, n := range a[0] {
			key = (key*31 + n*(place+1)) % math.MaxInt32
		}
		seen[key] = true
	}
	if len(seen) < 9 {
		t.Errorf("%d orders for 10 seeds", len(seen))
	}
}

// Nothing runs by itself, but a program that polls gets its result.
func TestShufflePolling(t *testing.T) {
	for _, k := range kindsOfDevice {
		runOn(t, k.make(t), Options{Mode: Shuffle}, func(s *setup) {
			x := s.from(0)
			for range 100 {
				x = s.apply(addOne, x)
			}
			x = s.fetch(x)
			for polls := 0; !x.Ready(); polls++ {
				if polls > 10_000 {
					t.Fatalf("on %v: not ready after %d polls", s.dev, polls)
				}
			}
			s.want(x, 100)
		})
	}
}

// A goroutine has counted an operation as in flight but not enqueued it yet. A producer that waits at
// the bound runs the operation when it comes: nobody else would.
func TestShuffleStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{Mode: Shuffle, Seed: 1, Channels: true, MaxBytes: 8})
		x, y := fromFloats(e, newCPU(1), 1), fromFloats(e, newCPU(1), 2)
		done := make(chan bool)
		var op Op
		op.Cmd.Kernel = addOne
		e.admit(8, &op, 0)
		go func() {
			unary(e, addOne, y, y)
			close(done)
		}()
		synctest.Wait()
		x.st.push(&Op{Cmd: device.Command{Kernel: addOne, N: 1}, Operands: [device.MaxOperands]*Storage{x, x}}, 1, 0, 8, nil, nil)
		<-done
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
