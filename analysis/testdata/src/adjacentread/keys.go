package adjacentread

import (
	"fmt"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func groups(xs []*tensor.Tensor) map[string]int {
	seen := make(map[string]int)
	for i, x := range xs {
		key := fmt.Sprintf("%v", x) // want `read after read: fmt.Sprintf reads one tensor of xs at a time; stack them and read once`
		seen[key] = i
	}
	return seen
}

// Silent from here on.

func lines(xs []*tensor.Tensor) (list []string) {
	for _, x := range xs {
		list = append(list, fmt.Sprintf("%v", x))
	}
	return list
}

func addUp(xs []tensor.F64) (sum float64) {
	for _, x := range xs {
		sum += x.Item()
	}
	return sum
}

func rest(xs []*tensor.Tensor) (sum float64) {
	var queue []*tensor.Tensor
	for _, x := range xs {
		queue = append(queue, x.Sum())
		if len(queue) > 8 {
			sum += queue[0].Item()
			queue = queue[1:]
		}
	}
	for _, x := range queue {
		sum += x.Item()
	}
	return sum
}
