//go:build !amd64

package pool

// pause spins for a short time, in proportion to n.
func pause(n int) {
	for range n * 8 {
	}
}
