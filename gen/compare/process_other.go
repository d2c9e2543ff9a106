//go:build !unix

package compare

import (
	"os"
	"os/exec"
)

// Without process groups only the program itself is killed, and what it
// started is given up when its output is not closed in time.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func watchPeak(int) func(*os.ProcessState) int64 {
	return func(*os.ProcessState) int64 { return 0 }
}
