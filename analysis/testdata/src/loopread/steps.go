package loopread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What runs in each step of the optimiser is not rare, whatever the step's guard says.

func norm(net nn.Module) float64 {
	var squares []*tensor.Tensor
	for _, p := range net.Params() {
		squares = append(squares, p.Grad().Square().Sum())
	}
	return tensor.Stack(0, squares...).Sum().Item()
}

func accumulated(net nn.Module, opt *optim.Optimizer, data []Batch, every int) (norms, losses []float64) {
	for i, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		loss.Backward()
		if (i+1)%every != 0 {
			continue
		}
		norms = append(norms, norm(net))
		opt.Step()
		losses = append(losses, loss.Item()) // want `only kept`
	}
	for i, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		loss.Backward()
		if (i+1)%every == 0 {
			opt.Step()
			losses = append(losses, loss.Item()) // want `only kept`
			if i%1000 == 0 {
				fmt.Println(loss) // in few of the steps
			}
		}
	}
	return norms, losses
}

// Some steps are taken in any case, or none that the loop shows, or many for each read.
func rareBesideSteps(net, other nn.Module, opt, slow *optim.Optimizer, data []Batch, every int) (losses []float64) {
	for i, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		opt.Minimize(loss)
		if (i+1)%every == 0 {
			slow.Minimize(nn.MSELoss(other.Forward(b.X), b.Y))
			losses = append(losses, loss.Item())
		}
	}
	for i, b := range data {
		loss := nn.MSELoss(net.Forward(b.X), b.Y)
		if i%every == 0 {
			for _, p := range net.Params() {
				p.Set(p.Value().MulScalar(0.1))
			}
			losses = append(losses, loss.Item())
		}
	}
	for i, b := range data {
		y := net.Forward(b.X)
		if i%every == 0 {
			for _, b := range data {
				opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
			}
			losses = append(losses, y.Mean().Item())
		}
	}
	return losses
}
