package hiddenloop

import (
	"apps"
	"solvers"
	"trainers"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that another package keeps, and calls in its loop.

type curve struct{ all []float64 }

// seen are all losses.
var seen []float64

func (l *curve) add(loss *tensor.Tensor) {
	seen = append(seen, loss.Item()) // want `AT012`
}

func (l *curve) mean() (sum float64) {
	for _, v := range l.all {
		sum += v / float64(len(l.all))
	}
	return sum
}

// keeper returns a function that is given to a trainer.
func keeper(l *curve) func(loss *tensor.Tensor) {
	return func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	}
}

func hookedInto(t *trainers.Trainer, a *apps.App, l *curve, later chan *tensor.Tensor) {
	n := 0
	t.Hook(func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	})
	t.Hook(func(loss *tensor.Tensor) {
		if n++; n%100 == 0 {
			l.all = append(l.all, loss.Item())
		}
	})
	t.Hook(func(loss *tensor.Tensor) { later <- loss })
	t.Hook(func(loss *tensor.Tensor) {
		go func() { l.all = append(l.all, loss.Item()) }()
	})
	t.Hook(keeper(l))
	t.State(func(s *trainers.State) {
		l.all = append(l.all, s.Loss.Item()) // want `AT012`
	})
	a.Losses(func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	})
	t.Name("step", func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	})
	// Called after each epoch, once, now and then, beside the loop, or at events that nobody knows.
	a.Totals(func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
	t.Seldom(func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
	t.Last(func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
	t.Thin(func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
	t.Beside(func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
	t.Name("begin", func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
}

func optionsOf(opt *optim.Optimizer, l *curve) *trainers.Trainer {
	return trainers.New(opt, trainers.WithHook(func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	}), trainers.WithHook(l.add), trainers.WithPass(func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item())
	}))
}

func setFields(t *trainers.Trainer, l *curve) {
	t.Each = func(i int, loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	}
	t.Every = func(i int, loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) }
	t.Pass = func(i int, loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) }
	t.Watchers = append(t.Watchers, func(i int, loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	})
}

func trainerOf(l *curve) *trainers.Trainer {
	return &trainers.Trainer{
		Each: func(i int, loss *tensor.Tensor) {
			l.all = append(l.all, loss.Item()) // want `AT012`
		},
		Watchers: []trainers.Watcher{func(i int, loss *tensor.Tensor) {
			l.all = append(l.all, loss.Item()) // want `AT012`
		}},
		// Batches were there before, and a function that returns a value is asked for it.
		Seen: func(b *tensor.Tensor) { l.all = append(l.all, b.Item()) },
		Rated: func(loss *tensor.Tensor) float64 {
			l.all = append(l.all, loss.Item())
			return l.mean()
		},
		// One that says when to stop is told of it.
		Until: func(loss *tensor.Tensor) bool {
			l.all = append(l.all, loss.Item()) // want `AT012`
			return false
		},
	}
}

// Somebody waits for each of these, or wants to see all.
func frames(w *trainers.World, s *trainers.Server, r *trainers.Replay, l *curve) {
	r.Shown(func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) })
	w.Frames(func(u *tensor.Tensor) { l.all = append(l.all, u.Item()) })
	s.Answered(func(y *tensor.Tensor) { l.all = append(l.all, y.Item()) })
}

func viewers(xs []*tensor.Tensor, l *curve) {
	trainers.Show(xs, trainers.ViewFunc(func(loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	}))
}

// Put is called by a function that the loop calls.
func (l *curve) Put(loss *tensor.Tensor) error {
	seen = append(seen, loss.Item()) // want `AT012`
	return nil
}

// A function that is called until it succeeds is called once.
func tried(x *tensor.Tensor, l *curve) error {
	return trainers.Try(3, func() error {
		l.all = append(l.all, x.MulScalar(3).Item())
		return nil
	})
}

// What is called by a loop over nobody knows what, but by such a name.
func swept(l *curve) *trainers.Sweep {
	return &trainers.Sweep{AtEpoch: func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) }}
}

// once is given to a loop in the function that it is given to: the finding is at the call there, of another rule.
func once(loss *tensor.Tensor) { println(loss.Item()) }

func given(xs []*tensor.Tensor) { trainers.Each(xs, once) }

// Options of another package, whose functions call what is in them in each step, or now and then.
func solved(x *tensor.Tensor, l *curve) {
	solvers.Track(x, 100, solvers.Options{Progress: func(i int, x *tensor.Tensor) {
		l.all = append(l.all, x.Item()) // want `AT012`
	}})
	solvers.TrackSome(x, 100, solvers.Options{Every: 20, Progress: func(i int, x *tensor.Tensor) {
		l.all = append(l.all, x.Item())
	}})
	solvers.TrackBoth(x, 100, solvers.Options{Every: 20, Progress: func(i int, x *tensor.Tensor) {
		l.all = append(l.all, x.Item()) // want `AT012`
	}})
}

// Functions of which a loop of another package adds up what they return, or looks at it, and variables of functions.
func accuracy(pred, y *tensor.Tensor) float64 {
	return pred.Sub(y).Mean().Item() // want `AT012`
}

func recall(pred, y *tensor.Tensor) float64 {
	return pred.Sub(y).Sum().Item()
}

func factor(pred, y *tensor.Tensor) float64 { return 3 }

func measures(b *trainers.Bench, l *curve) {
	b.Metric("accuracy", accuracy)
	b.Metric("factor", factor)
	b.Judge("recall", recall)
	trainers.Announce = func(step int, loss *tensor.Tensor) {
		l.all = append(l.all, loss.Item()) // want `AT012`
	}
	trainers.AnnounceAll = func(loss *tensor.Tensor) { l.all = append(l.all, loss.Item()) }
}

// Functions that return tensors need not wait for them.
func logged(next trainers.Stage, l *curve) trainers.Stage {
	return func(x *tensor.Tensor) *tensor.Tensor {
		y := next(x)
		l.all = append(l.all, y.Item()) // want `AT012`
		return y
	}
}

func loggedSometimes(next trainers.Stage, l *curve) trainers.Stage {
	n := 0
	return func(x *tensor.Tensor) *tensor.Tensor {
		y := next(x)
		if n++; n%100 == 0 {
			l.all = append(l.all, y.Item())
		}
		return y
	}
}

func piped(p *trainers.Pipe, l *curve) {
	p.Then(func(x *tensor.Tensor) *tensor.Tensor {
		l.all = append(l.all, x.Item()) // want `AT012`
		return x
	})
	p.AtEnd(func(x *tensor.Tensor) *tensor.Tensor {
		l.all = append(l.all, x.Item())
		return x
	})
}

// A visitor is called with a tensor, and its method with none: that may be for something else.
type visitor func(loss *tensor.Tensor)

func (v visitor) OnStep(step int) {}

func visited(visit func(v visitor)) {
	visit(visitor(func(loss *tensor.Tensor) { println(loss.Item()) }))
}
