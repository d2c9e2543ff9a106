//go:build !amd64

package pool

// pause passes a little time, n times.
func pause(n int) {
	for range n * 8 {
	}
}
