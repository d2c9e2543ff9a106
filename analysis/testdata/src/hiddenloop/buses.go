package hiddenloop

import (
	"buses"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that are registered by the name of an event, or become part of another function.

func (l *curve) onEvent(e buses.Event) {
	l.all = append(l.all, e.Loss.Item()) // want `AT012`
}

func byEvent(b *buses.Bus, l *curve, handlers map[string]buses.Handler, lists map[string][]buses.Handler) {
	b.On("step", l.onEvent)
	b.On("batch_end", func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) })    // want `AT012`
	handlers["on_step"] = func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) } // want `AT012`
	lists["step"] = append(lists["step"], func(e buses.Event) {
		l.all = append(l.all, e.Loss.Item()) // want `AT012`
	})
	b.On("step", buses.Chain(buses.Named("loss", func(e buses.Event) {
		l.all = append(l.all, e.Loss.Item()) // want `AT012`
	})))
	// At other events, now and then, late, only kept, or beside.
	b.On("epoch", func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) })
	b.On("stepped on", func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) })
	handlers["summary"] = func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) }
	b.On("step", buses.EveryN(100, func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) }))
	b.On("step", buses.EveryN(100, buses.Chain(func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) })))
	b.On("step", buses.Late(func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) }))
	b.On("step", func(e buses.Event) {
		if e.Step%50 == 0 {
			l.all = append(l.all, e.Loss.Item())
		}
	})
	var kept []*tensor.Tensor
	b.On("step", func(e buses.Event) { kept = append(kept, e.Loss) })
	b.On("step", func(e buses.Event) {
		go func() { l.all = append(l.all, e.Loss.Item()) }()
	})
}

// What buses calls in Step, which trainers call in each step.
func known(l *curve) {
	buses.Known("curve", func(e buses.Event) {
		l.all = append(l.all, e.Loss.Item()) // want `AT012`
	})
	buses.Each(buses.Named("curve", func(e buses.Event) {
		l.all = append(l.all, e.Loss.Item()) // want `AT012`
	}))
	buses.Known("seldom", buses.EveryN(10, func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) }))
	buses.Pass(func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) })
	buses.Sparse(func(e buses.Event) { l.all = append(l.all, e.Loss.Item()) })
}

// Functions that return what Run calls in each step. Watches are also called once.
func callback(l *curve) buses.Callback {
	return func(step int, loss *tensor.Tensor) error {
		l.all = append(l.all, loss.Item()) // want `AT012`
		return nil
	}
}

func rareCallback(l *curve) buses.Callback {
	return func(step int, loss *tensor.Tensor) error {
		if step%20 == 0 {
			l.all = append(l.all, loss.Item())
		}
		return nil
	}
}

func watch(l *curve) buses.Watch {
	return func(loss *tensor.Tensor) error {
		l.all = append(l.all, loss.Item())
		return nil
	}
}
