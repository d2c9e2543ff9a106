//go:build !linux

package main

import (
	"runtime/metrics"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
)

// residentBytes is how much memory the process has taken from the system and not returned, as far as it knows.
func residentBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	bytes := int64(s[0].Value.Uint64() - s[1].Value.Uint64())
	for _, d := range asyncrt.Stats().Memory {
		bytes += d.Live + d.Cached
	}
	return bytes
}
