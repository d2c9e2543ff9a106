package vec

import (
	"cmp"
	"sync"
)

// Caches are the sizes in bytes of the caches of data that a core uses. 0 is one that there isn't.
type Caches struct {
	First, Second, Last int
}

// add adds a cache of the given level.
func (c *Caches) add(level, size int) {
	switch level {
	case 1:
		c.First = max(c.First, size)
	case 2:
		c.Second = max(c.Second, size)
	}
	c.Last = max(c.Last, size)
}

// CachesOf returns the sizes of the caches. What the processor or the system does not tell is taken to be usual.
var CachesOf = sync.OnceValue(func() Caches {
	c := askCaches()
	return Caches{cmp.Or(c.First, 32<<10), cmp.Or(c.Second, 512<<10), cmp.Or(c.Last, 32<<20)}
})
