//go:build !unix

package cpu

import (
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// guarded returns memory. This system has no way to guard it.
func guarded(_ *testing.T, bytes int64, _ bool) (b *device.Buffer, free func()) {
	return device.HostBuffer(bytes), func() {}
}
