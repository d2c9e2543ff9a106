package loopprint

import (
	"boards"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Values of types of another package, whose methods set the tensors that they show.

type dashboard struct{ board *boards.Board }

func (d *dashboard) step(x *tensor.Tensor) { d.board.Gauge().Set(x.Mean()) }

func showsEach(d *dashboard, g *boards.Gauge, l *slog.Logger, xs []*tensor.Tensor) {
	for _, x := range xs {
		d.step(x)
		fmt.Println(d.board)                                    // want `fmt.Println waits for d.board`
		l.Info("step", "loss", d.board.Gauge())                 // want `l.Info waits for`
		if _, err := json.Marshal(d.board.Gauges); err != nil { // want `json.Marshal waits for d.board.Gauges`
			return
		}
	}
	for _, x := range xs {
		g.Set(x.Norm())
		log.Print("norm ", g) // want `log.Print waits for g`
	}
	for _, x := range xs {
		d.board.Observe(x)
		fmt.Println(d.board) // want `fmt.Println waits for d.board`
	}
}

// Silent.

func showsFew(d *dashboard, g *boards.Gauge, b *boards.Board, xs []*tensor.Tensor) {
	for i, x := range xs {
		d.step(x)
		fmt.Println(d.board.Brief(), d.board.Gauge().Dim())
		if i%100 == 0 {
			fmt.Println(d.board)
		}
	}
	fmt.Println(d.board)
	// Nothing sets the gauge meanwhile, though there is one.
	for _, x := range xs {
		x.MulScalar(2)
		fmt.Println(g, b.Gauge())
	}
	for _, g := range b.Gauges {
		fmt.Println(g)
	}
}
