//go:build !amd64 || noasm || race

package vec

import "sync"

// Fence has nothing to do where Stream writes as everything does.
func Fence() {}

// LastCache is how many bytes the largest cache has that a core uses, or a guess where the system does not tell.
var LastCache = sync.OnceValue(func() int {
	if n := largestCache(); n > 0 {
		return n
	}
	return someCache
})
