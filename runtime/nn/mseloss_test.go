package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// The loss and its gradients have the bits of the operations that it is made of, one after the other.
func TestMSELossHasTheBitsOfItsSteps(t *testing.T) {
	for _, shape := range [][]int{{}, {0}, {1}, {64, 1}, {3, 5, 7}, {5000}} {
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
			pred, target := tensor.Randn(shape...).As(dt).Track(), tensor.Randn(shape...).As(dt).Track()
			got, want := nn.MSELoss(pred, target), pred.Sub(target).Square().Mean()
			pairs := [][2]*tensor.Tensor{{got, want}}
			gradients, wanted := tensor.Grad(got, pred, target), tensor.Grad(want, pred, target)
			for i := range wanted {
				pairs = append(pairs, [2]*tensor.Tensor{gradients[i], wanted[i]})
			}
			for i, p := range pairs {
				x, y := p[0].As(tensor.Float64).Float64s(), p[1].As(tensor.Float64).Float64s()
				if !slices.Equal(x, y) && fmt.Sprint(x) != fmt.Sprint(y) { // the mean of nothing is NaN
					t.Errorf("%v%v: of the loss and its gradients the one with number %d is %v, want %v", dt, shape, i, x, y)
				}
			}
		}
	}
}
