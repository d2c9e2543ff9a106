package loopcall

import (
	"buses"
	"plots"
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What another package has, and a third one calls in its loop.
func registered(t *trainers.Trainer, b *trainers.Bench, w *trainers.World, xs []*tensor.Tensor) {
	t.Hook(plots.Live)                  // want `plots.Live waits for the device in each iteration \(loss.Item\(\) at plots.go:7\)`
	t.Hook(plots.Above(3))              // want `plots.Above\(3\) waits`
	t.Name("step", plots.Live)          // want `plots.Live waits`
	t.Name("batch_end", plots.Above(3)) // want `plots.Above\(3\) waits`
	b.Metric("error", plots.Error)      // want `plots.Error waits`
	trainers.Show(xs, &plots.Line{})    // want `plots.Line waits`
	// It waits now and then, or not at all, or is called now and then, late, for its value, or with what the loop
	// goes on from.
	t.Hook(plots.Some)
	t.Hook(plots.Later)
	t.Seldom(plots.Live)
	t.Last(plots.Live)
	w.Frames(plots.Live)
	t.Name("begin", plots.Live)
	b.Judge("error", plots.Error)
	trainers.Show(xs, plots.Point{})
	println(plots.Drawn())
}

// What becomes a part of another function of that package.
func wrappedAgain(b *buses.Bus) {
	b.On("step", buses.Named("printed", buses.Printed)) // want `buses.Printed waits`
	b.On("step", buses.EveryN(50, buses.Printed))
	b.On("epoch", buses.Printed)
}
