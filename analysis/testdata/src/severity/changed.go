package severity

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Elements of one list, beside each other and not.
func settles(history []*tensor.Tensor, i, j int) bool {
	return history[len(history)-1] == history[len(history)-2] || // want `AT033`
		history[i] == history[j]
}

func aliases(history []*tensor.Tensor) bool { return history[0] == history[len(history)-1] }

// Whether a function has returned its operand is a question about the handle.
func unchanged(x *tensor.Tensor, clip func(*tensor.Tensor) *tensor.Tensor) bool {
	old := x
	if x = clip(x); x == old {
		return true
	}
	return false
}
