package optim

import "math"

var inf = math.Inf(1)

// only returns the options that a function was given, or none. It panics if there are more than one.
func only[T any](name string, options []T) (o T) {
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		wrong(name, "%d structs of options, want one", len(options))
	}
	return o
}

// option returns the value that the named option of a function stands for. It panics unless that is a number from 0 to
// less than limit.
func option(name, field string, value, otherwise, limit float64) float64 {
	switch {
	case value == 0:
		return otherwise
	case value == None:
		return 0
	case !(value > 0 && value < limit):
		wrong(name, "%s is %v, want a number from 0 to less than %v", field, value, limit)
	}
	return value
}
