//go:build !amd64 || noasm || race

package vec

// Fence has nothing to do where Stream writes as everything does.
func Fence() {}

// LastCache is a guess at how many bytes the largest cache has that a core uses.
func LastCache() int { return someCache }
