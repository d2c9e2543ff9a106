// Package lists is a library that knows no tensors, so that there are no facts about it.
package lists

// Map returns what f makes of the elements of a list.
func Map[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// Retry calls f until it succeeds.
func Retry(times int, f func() error) error {
	err := f()
	for i := 1; i < times && err != nil; i++ {
		err = f()
	}
	return err
}

// Later calls f some time.
func Later(f func()) { go f() }

// Every calls f for each number.
func Every(n int, f func(int)) {
	for i := range n {
		f(i)
	}
}
