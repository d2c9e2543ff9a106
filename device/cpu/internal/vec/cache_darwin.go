//go:build !amd64 || noasm || race

package vec

import "golang.org/x/sys/unix"

// askCaches asks the system for the caches of the fast cores. The second is the last that Apple tells of.
func askCaches() (c Caches) {
	for level, names := range [][]string{1: {"hw.perflevel0.l1dcachesize", "hw.l1dcachesize"}, 2: {"hw.perflevel0.l2cachesize", "hw.l2cachesize"}, 3: {"hw.l3cachesize"}} {
		for _, name := range names {
			if n, err := unix.SysctlUint64(name); err == nil && n > 0 {
				c.add(level, int(n))
				break
			}
		}
	}
	return c
}
