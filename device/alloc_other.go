//go:build !linux

package device

import "errors"

func adviseHuge([]byte) {}

// discardPages: these systems are not asked.
func discardPages([]byte) error { return errors.ErrUnsupported }

// hostMemory is only a bound on how much memory the process may have: these systems are not asked.
func hostMemory() int64 { return addressable }
