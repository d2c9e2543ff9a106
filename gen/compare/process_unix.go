//go:build unix

package compare

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the leader of a process group, so that killGroup reaches
// what it starts, and an interrupt from the terminal reaches only us.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
