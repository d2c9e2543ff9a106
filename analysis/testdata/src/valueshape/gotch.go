package valueshape

import "github.com/sugarme/gotch/ts"

func narrowed(xs []*ts.Tensor) (ys []*ts.Tensor) {
	for _, x := range xs {
		at := x.MustMean(false).Int64Value(nil)
		ys = append(ys, x.MustNarrow(0, at, 16, false), x.MustSelect(0, at, false))
	}
	for _, x := range xs {
		n := x.MustMean(false).Int64Value(nil) // want `AT026`
		ys = append(ys, x.MustNarrow(0, 3, n, false))
	}
	return ys
}
