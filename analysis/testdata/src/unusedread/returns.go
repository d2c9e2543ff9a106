package unusedread

import "github.com/asyncgen/asyncgen/runtime/tensor"

type point struct{ x, y int }

func several(x *tensor.Tensor) (*tensor.Tensor, int, string, bool, point, error) {
	x.Item() // want `AT030`
	return x, 1, "", true, point{}, nil
}

func results(x *tensor.Tensor) (n int, _ []int, err error) {
	n = 3
	x.Item() // want `AT030`
	return n, nil, nil
}

func inLiteral(x *tensor.Tensor) {
	run(func() (any, error) {
		x.Item() // want `AT030`
		return nil, nil
	})
}

func run(func() (any, error)) {}

// No fix from here on: the error has no way out, or what is returned with it is
// not easily written.

func shadowed(x *tensor.Tensor) (n int, err error) {
	for n := range 3 {
		x.Item() // want `AT030`
		_ = n
	}
	return
}

func generic[T any](x *tensor.Tensor) (T, error) {
	x.Item() // want `AT030`
	var zero T
	return zero, nil
}

func array(x *tensor.Tensor) ([2]int, error) {
	x.Item() // want `AT030`
	return [2]int{}, nil
}

func inside(x *tensor.Tensor) error {
	func() {
		x.Item() // want `AT030`
	}()
	return nil
}
