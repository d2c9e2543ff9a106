package kernel

import "slices"

// ArgSort returns the order of the elements of x, which are numbers: the indices of the least, the next, and so
// on to the greatest, or from that to the least. Equal elements, and 0 and -0 are, keep the order that
// they have in x; NaNs come behind all others, in either direction.
func ArgSort[T float32 | float64 | int64](x []T, descending bool) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := x[i], x[j]
		switch {
		case a != a || b != b:
			return isNaN(a) - isNaN(b)
		case a == b:
			return 0
		case a < b != descending:
			return -1
		}
		return 1
	})
	return order
}

func isNaN[T float32 | float64 | int64](x T) int {
	if x != x {
		return 1
	}
	return 0
}
