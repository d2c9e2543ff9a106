package overlay

import (
	"context"
	"os"
	"os/exec"
)

// Command returns the go command with the given arguments. When ctx ends it
// is interrupted, not killed: so it ends what it has started and removes its
// temporary files, and go run waits for a program that takes its time to end.
func Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(os.Interrupt); err == nil {
			return nil
		}
		return cmd.Process.Kill() // there are no signals on Windows
	}
	return cmd
}
