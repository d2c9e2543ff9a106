package unusedread

import "github.com/asyncgen/asyncgen/runtime/tensor"

var shared float64

func variables(xs []*tensor.Tensor) (result float64) {
	var last, kept float64
	for _, x := range xs {
		last = x.Norm().Item() // want `value of x.Norm\(\).Item\(\) is not used`
	}
	_ = last
	var first = xs[0].Item() // want `AT030`
	_ = first
	for _, x := range xs {
		kept = x.Item()
		shared = x.Item()
		result = x.Item()
	}
	_ = kept
	func() { _ = kept + 1 }()
	sum := 0.0
	sum += xs[0].Item()
	sum = xs[1].Item()
	_, _ = sum, sum
	return
}
