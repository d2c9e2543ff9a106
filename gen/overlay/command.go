package overlay

import (
	"context"
	"os"
	"os/exec"
)

// Command returns the go command with the given arguments. When ctx ends, the command is
// interrupted, not killed. So it can end what it has started and remove its temporary files, and go
// run waits until its program has ended.
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
