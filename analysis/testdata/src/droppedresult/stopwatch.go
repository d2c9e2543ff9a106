package droppedresult

import (
	"fmt"
	"os"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
	"stopwatch"
)

// Work is enqueued to see how long it takes.

type watch struct{ started, total time.Duration }

func (w *watch) tic() { w.started = elapsed() }
func (w *watch) toc() { w.total += elapsed() - w.started }

var begin = time.Now()

func elapsed() time.Duration { return time.Since(begin) }

func trace(name string) func() {
	start := time.Now()
	return func() { fmt.Println(name, time.Since(start)) }
}

func local(x *tensor.Tensor, w *watch) {
	w.tic()
	x.MatMul(x)
	w.toc()
}

func traced(x *tensor.Tensor) {
	defer trace("product")()
	x.MatMul(x)
}

func foreign(x *tensor.Tensor) {
	w := stopwatch.New()
	w.Start()
	x.MatMul(x)
	w.Lap()
	w.Report()
}

func laps(x *tensor.Tensor, w *stopwatch.Watch, l *stopwatch.Laps) {
	l.Run("product", func() { x.MatMul(x) })
	w.Lap()
}

func given(x *tensor.Tensor) {
	fmt.Println(stopwatch.Time("product", func() { x.MatMul(x) }))
}

func faked(x *tensor.Tensor, c stopwatch.Clock) {
	start := c.Now()
	x.MatMul(x)
	fmt.Println(c.Now().Sub(start))
}

func value(x *tensor.Tensor, now func() time.Time) {
	start := now()
	x.MatMul(x)
	fmt.Println(now().Sub(start))
}

func profiled(x *tensor.Tensor) {
	pprof.StartCPUProfile(os.Stdout)
	x.MatMul(x)
	pprof.StopCPUProfile()
}

func allocated(x *tensor.Tensor) {
	fmt.Println(testing.AllocsPerRun(10, func() { x.MatMul(x) }))
}

// Reported: nothing is timed.

type record struct {
	name string
	x    *tensor.Tensor
	made time.Time
}

func (r *record) show() {}

func shown(r *record, d time.Duration) {
	r.x.AddScalar(1) // want `AT032`
	r.show()
	fmt.Println(d)
}
