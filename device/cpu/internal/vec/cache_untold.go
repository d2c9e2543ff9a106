//go:build (!amd64 || noasm || race) && !linux && !darwin

package vec

// largestCache is 0: the system is not asked.
func largestCache() int { return 0 }
