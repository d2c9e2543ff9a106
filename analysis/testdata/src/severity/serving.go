package severity

import (
	"context"
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A network that computes one message after the other could compute all that have come in the meantime.

type reading struct {
	sensor int
	values []float32
}

type alarm struct {
	sensor int
	score  float64
}

func alarms(ctx context.Context, net nn.Module, in <-chan reading, out chan<- alarm, limit float64) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w := <-in:
			s := net.Forward(tensor.From(w.values)).Mean()
			v, err := s.ItemContext(ctx) // want `AT001`
			if err != nil {
				return fmt.Errorf("sensor %d: %w", w.sensor, err)
			}
			if v > limit {
				out <- alarm{w.sensor, v}
			}
		}
	}
}

type inquiry struct {
	row   []float32
	reply chan<- float64
}

type service struct {
	net   nn.Module
	queue chan inquiry
	state *tensor.Tensor
}

func (s *service) scores(rows []float32, n int) *tensor.Tensor {
	return s.net.Forward(tensor.From(rows, n, -1)).Mean(1)
}

func (s *service) answer(r inquiry) { r.reply <- s.scores(r.row, 1).Item() }

func (s *service) loop() {
	for r := range s.queue {
		r.reply <- s.scores(r.row, 1).Item() // want `AT001`
	}
}

func (s *service) start(done <-chan struct{}) {
	go func() {
		for {
			select {
			case r := <-s.queue:
				s.answer(r) // want `AT010`
			case <-done:
				return
			}
		}
	}()
}

// It takes what is there.
func (s *service) batches() {
	for first := range s.queue {
		all := []inquiry{first}
		for len(all) < 32 && len(s.queue) > 0 {
			all = append(all, <-s.queue)
		}
		var rows []float32
		for _, r := range all {
			rows = append(rows, r.row...)
		}
		for i, v := range s.scores(rows, len(all)).Float32s() {
			all[i].reply <- float64(v)
		}
	}
}

// Each answer depends on those before.
func (s *service) conversation() {
	for r := range s.queue {
		s.state = s.net.Forward(tensor.From(r.row).Add(s.state)).Detach()
		r.reply <- s.state.Mean().Item()
	}
}

func (s *service) online(net nn.Module, state *tensor.Tensor) {
	for r := range s.queue {
		y := net.Forward(tensor.From(r.row).Add(state))
		state = y.Detach()
		r.reply <- y.Mean().Item()
	}
}

// What comes in lists is a batch.
func (s *service) lists(in <-chan [][]float32, out chan<- []float32) {
	for rows := range in {
		out <- s.net.Forward(tensor.From(rows[0])).Float32s()
	}
}

// Arithmetic on one number is as fast as the queue.
func (s *service) units() {
	for r := range s.queue {
		r.reply <- tensor.From(r.row).Norm().Item()
	}
}

type arm interface{ Move(angle float64) }

// What the arm does decides what the sensors say next.
func (s *service) moves(a arm) {
	for r := range s.queue {
		a.Move(s.scores(r.row, 1).Item())
	}
}

func (s *service) chat() {
	for r := range s.queue {
		r.reply <- s.scores(r.row, 1).Item()
	}
}
