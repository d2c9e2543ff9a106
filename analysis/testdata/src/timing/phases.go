package timing

import (
	"log"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A clock that is read for each phase.
func eachPhase(x *tensor.Tensor) {
	start := time.Now()
	y := x.MatMul(w)
	log.Print("product took ", time.Since(start)) // want `AT020`
	log.Print(y.Sum().Item())
	z := y.MatMul(w)
	_ = z
	asyncrt.WaitIdle()
	log.Print("all took ", time.Since(start))
}

type priced struct{ price, delta *tensor.Tensor }

// timed asks for tensors, and could wait for them.
func withTime(f func() priced) (priced, time.Duration) {
	start := time.Now()
	r := f()
	return r, time.Since(start) // want `time.Since\(start\) is the time it took to enqueue`
}

func asks() time.Duration {
	_, took := withTime(func() priced { return priced{w.MatMul(w), w} })
	return took
}
