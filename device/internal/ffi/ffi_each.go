//go:build !(amd64 && (linux || darwin) && !android && !ios && !faketime)

package ffi

import "unsafe"

// run makes each call in a crossing of its own.
func (c *crossing) run() {
	for c.done < c.n {
		call := (*Call)(unsafe.Add(unsafe.Pointer(c.calls), c.done*unsafe.Sizeof(Call{})))
		call.Result = callOne(call.Fn, &call.Args)
		c.done++
		if c.stop != 0 && call.Status() != 0 {
			return
		}
	}
}
