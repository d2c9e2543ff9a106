//go:build unix

package main

import (
	"os"
	"syscall"
)

// stop takes the processors from p until wake gives them back.
func stop(p *os.Process) { p.Signal(syscall.SIGSTOP) }

func wake(p *os.Process) { p.Signal(syscall.SIGCONT) }
