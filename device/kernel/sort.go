package kernel

import "slices"

// ArgSort returns the indices of x's elements in ascending order of the elements, or in descending order. Equal
// elements keep the order that they have in x; 0 and -0 are equal. NaNs come last in either direction.
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
