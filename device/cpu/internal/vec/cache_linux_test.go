//go:build !amd64 || noasm || race

package vec

import "testing"

func TestCacheBytes(t *testing.T) {
	for size, want := range map[string]int{"512K": 512 << 10, "32M": 32 << 20, "100": 100, "": 0, "some": 0} {
		if got := cacheBytes(size); got != want {
			t.Errorf("cacheBytes(%q) = %d, want %d", size, got, want)
		}
	}
}
