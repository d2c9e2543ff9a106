package severity

import (
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What somebody does with a value decides from what the next one is drawn.

type audience interface {
	Show(variant int) (click bool)
}

func bandit(a audience, turns []float32, n, rounds int) *tensor.Tensor {
	wins, tries := tensor.Ones(n), tensor.Ones(n)
	for range rounds {
		arm := wins.Sub(tries).Add(tensor.Randn(n)).ArgMax().ItemInt()
		one := tensor.From(turns).SubScalar(float64(arm))
		tries = tries.Add(one)
		if a.Show(int(arm)) {
			wins = wins.Add(one)
		}
	}
	return wins
}

// Here the answer changes nothing on the device.
func clicked(a audience, turns []float32, n, rounds int) (clicks int, sum *tensor.Tensor) {
	sum = tensor.Zeros(n)
	for range rounds {
		arm := tensor.Randn(n).ArgMax().ItemInt()         // want `AT003`
		one := tensor.From(turns).SubScalar(float64(arm)) // want `AT025`
		sum = sum.Add(one)
		if a.Show(int(arm)) {
			clicks++
		}
	}
	return clicks, sum
}

// Who reads the comment knows that it waits.

type documented struct{ sum float64 }

// Add adds the value of a tensor. It waits.
func (m *documented) Add(x *tensor.Tensor) { m.sum += x.Item() }

type untold struct{ sum float64 }

// Add adds the value of a tensor.
func (m *untold) Add(x *tensor.Tensor) { m.sum += x.Item() } // want `AT012`
