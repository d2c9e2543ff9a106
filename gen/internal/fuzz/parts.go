package fuzz

// partOperations are operations of the library that put elements in other places, and some of neighbours in a row.
func partOperations() []*operation {
	row := func(x *value, i int) *value { return part(x, i*x.shape[1], 1, x.shape[1]) }
	// with is x with the row i of y.
	with := func(x *value, i int, y *value) *value {
		return moved(x, func(k, j int) (*value, int, int) {
			if k == i {
				return y, 0, j
			}
			return x, k, j
		}, y)
	}
	up := func(x *value) *value { // the first row becomes the last
		return moved(x, func(i, j int) (*value, int, int) { return x, (i + 1) % x.shape[0], j })
	}
	before := func(x *value) *value { // the neighbour on the left; the first element is its own
		return moved(x, func(i, j int) (*value, int, int) { return x, i, max(j-1, 0) })
	}
	// scattered has row i,j of y where row i,j of x is in the order of column j.
	scattered := func(x, y *value) *value {
		order := ordered(x, 0, false)
		if s := spoiled(x.dtype, x.shape, x, y); s != nil {
			return s
		}
		z := newValue(x.dtype, x.shape)
		for at, i := range order.ints {
			z.floats[int(i)*x.shape[1]+at%x.shape[1]] = y.floats[at]
		}
		return z
	}
	scaled := func(a []*value) *value { // an accumulated sum of one product
		return add(mul(a[0], a[1]), scalar(a[0], 0))
	}
	const neighbours = "1D(tensor.Pool{Window: tensor.Both(2), Stride: tensor.Both(1), Padding: tensor.Both(1)}).Slice(1, 0, {c})"
	return []*operation{
		shaped("$0.Index(tensor.All().Step(-1), tensor.Ellipsis())", 1, func(a []*value) *value {
			x := a[0]
			return moved(x, func(i, j int) (*value, int, int) { return x, x.shape[0] - 1 - i, j })
		}, tMat, tMat),
		shaped("$0.SetIndex($1.Row(0), tensor.At(-1))", 1, func(a []*value) *value {
			x, last := a[0], a[0].shape[0]-1
			if last == 0 { // of x nothing is left, not even that it failed
				x = newValue(x.dtype, x.shape)
			}
			return with(x, last, row(a[1], 0))
		}, tMat, tMat, tMat),
		shaped("tensor.Concat(0, $0.Split(0, 1, {r}-1)[1], $0.Chunk(0, {r})[0])", 1, func(a []*value) *value { return up(a[0]) }, tMat, tMat),
		shaped("tensor.Stack(1, $0.Unbind(1)...)", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
		shaped("$0.Pad(0, 1, 0, 0.5).Slice(0, 0, {r})", 1, func(a []*value) *value {
			x, half := a[0], full(scalar(a[0], 0.5), a[0].shape)
			return moved(x, func(i, j int) (*value, int, int) {
				if i == 0 {
					return half, 0, j
				}
				return x, i - 1, j
			})
		}, tMat, tMat),
		shaped("$0.PadWith(tensor.Replicate, 1, 1, 0).Slice(1, 0, {c})", 1, func(a []*value) *value { return before(a[0]) }, tMat, tMat),
		shaped("$0.Tile(2, 1).Slice(0, 1, {r}+1)", 1, func(a []*value) *value { return up(a[0]) }, tMat, tMat),
		shaped("$0.Unfold(0, 1, 1).Squeeze(2)", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
		shaped("$0.RepeatInterleave(0, 2).Slice(0, 1, {r}+1)", 1, func(a []*value) *value {
			return moved(a[0], func(i, j int) (*value, int, int) { return a[0], (i + 1) / 2, j })
		}, tMat, tMat),
		shaped("$0.Flip(1)", 1, func(a []*value) *value {
			return moved(a[0], func(i, j int) (*value, int, int) { return a[0], i, a[0].shape[1] - 1 - j })
		}, tMat, tMat),
		shaped("$0.Roll(0, -1)", 1, func(a []*value) *value { return up(a[0]) }, tMat, tMat),
		shaped("$0.Tril(0)", 1, func(a []*value) *value { return triangle(a[0], func(i, j int) bool { return j <= i }) }, tMat, tMat),
		shaped("$0.Triu(1)", 1, func(a []*value) *value { return triangle(a[0], func(i, j int) bool { return j > i }) }, tMat, tMat),
		shaped("$0.Diag(1).Diagonal(1)", 1, func(a []*value) *value { return a[0] }, tVec, tVec),
		shaped("$0.MaskedFill($1, 2)", 1, func(a []*value) *value { return where(a[1], full(scalar(a[0], 2), a[0].shape), a[0]) }, tMat, tMat, tBMat),
		shaped("$0.TakeAlong(0, $0.ArgSort(0, tensor.Ascending))", 1, func(a []*value) *value { return chosen(a[0], ordered(a[0], 0, false), 0) }, tMat, tMat),
		shaped("$0.Scatter(0, $0.ArgSort(0, tensor.Ascending), $1)", 1, func(a []*value) *value { return scattered(a[0], a[1]) }, tMat, tMat, tMat),
		shaped("$0.ScatterAdd(0, $0.ArgSort(0, tensor.Ascending), $1)", 1, func(a []*value) *value {
			return add(a[0], add(scattered(a[0], a[1]), scalar(a[0], 0)))
		}, tMat, tMat, tMat),
		shaped("$0.IndexCopy(0, tensor.From([]int{0}), $1.Slice(0, 0, 1))", 1, func(a []*value) *value {
			return with(a[0], 0, row(a[1], 0))
		}, tMat, tMat, tMat),
		shaped("$0.IndexAdd(0, tensor.From([]int{0}), $1.Slice(0, 0, 1))", 1, func(a []*value) *value {
			zeros := full(scalar(a[0], 0), a[0].shape)
			return add(a[0], add(with(zeros, 0, row(a[1], 0)), zeros))
		}, tMat, tMat, tMat),
		shaped("$0.Reshape({r}, 1, {c}).Conv1D($1.Reshape(1, 1, 1), tensor.Conv{}).Reshape({r}, {c})", 1, scaled, tMat, tMat, tOne),
		shaped("$0.Reshape({r}, 1, {c}).ConvTranspose1D($1.Reshape(1, 1, 1), tensor.ConvTranspose{}).Reshape({r}, {c})", 1, scaled, tMat, tMat, tOne),
		shaped("$0.Reshape(1, {r}, {c}).ConvTranspose2D($1.Reshape(1, 1, 1, 1), tensor.ConvTranspose{}).Reshape({r}, {c})", 1, scaled, tMat, tMat, tOne),
		shaped("$0.MaxPool"+neighbours, 1, func(a []*value) *value {
			return zip(before(a[0]), a[0], func(x, y float64) float64 { return max(x, y) }, nil)
		}, tMat, tMat),
		shaped("$0.AvgPool"+neighbours, 1, func(a []*value) *value {
			means := div(add(add(before(a[0]), scalar(a[0], 0)), a[0]), scalar(a[0], 2))
			alone := add(a[0], scalar(a[0], 0))
			return moved(a[0], func(i, j int) (*value, int, int) {
				if j == 0 {
					return alone, i, j
				}
				return means, i, j
			})
		}, tMat, tMat),
		shaped("$0.AdaptiveAvgPool2D(1, 1).Reshape()", 1, func(a []*value) *value { return mean(a[0], -1) }, tOne, tMat),
		shaped("$0.Interpolate(tensor.Nearest, {r}, {c})", 1, func(a []*value) *value { return a[0] }, tMat, tMat),
	}
}

// moved is the matrix like x whose element i,j is the one that from returns: of which matrix, and where. It fails if x
// or one of others has failed.
func moved(x *value, from func(i, j int) (of *value, row, column int), others ...*value) *value {
	if s := spoiled(x.dtype, x.shape, append([]*value{x}, others...)...); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	for at := range z.floats {
		y, i, j := from(at/x.shape[1], at%x.shape[1])
		z.floats[at] = y.floats[i*x.shape[1]+j]
	}
	return z
}

// triangle is x with 0 where keeps does not hold.
func triangle(x *value, keeps func(i, j int) bool) *value {
	zeros := full(scalar(x, 0), x.shape)
	return moved(x, func(i, j int) (*value, int, int) {
		if keeps(i, j) {
			return x, i, j
		}
		return zeros, i, j
	})
}
