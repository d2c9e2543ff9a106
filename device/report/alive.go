//go:build !windows && !plan9

package report

import (
	"errors"
	"os"
	"syscall"
)

// isAlive reports whether there is a process with that number, whoever owns it.
func isAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
