//go:build !amd64 || noasm || race

package vec

import "golang.org/x/sys/unix"

// largestCache is the size of the second cache of the fast cores, in bytes: the last one that Apple tells of. It is 0
// where the system does not tell.
func largestCache() int {
	for _, name := range []string{"hw.perflevel0.l2cachesize", "hw.l3cachesize", "hw.l2cachesize"} {
		if n, err := unix.SysctlUint64(name); err == nil && n > 0 {
			return int(n)
		}
	}
	return 0
}
