package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// maxOutput bounds what is kept of each stream of a run. A program that prints
// more is stopped: comparing it would need all of it.
const maxOutput = 64 << 20

// A process is one finished run of a program.
type process struct {
	stdout, stderr []byte
	status         string // "exit status 0", "signal: segmentation fault"
	elapsed        time.Duration
	peak           int64 // the largest resident size in bytes, if it was watched and the system tells

	benchmarks map[string]time.Duration // what they took, if it ran some
}

var (
	errTimeout = errors.New("did not finish in time and was killed")
	errOutput  = fmt.Errorf("printed more than %d MiB and was killed", maxOutput>>20)
)

// runProcess runs a program to its end, or kills it, and every process it has
// started, when limit has passed, when it prints too much, or when ctx ends.
// The error says which of these; a program that fails is not an error.
// Watching for its peak of memory costs it a little time.
func runProcess(ctx context.Context, limit time.Duration, dir string, env []string, watch bool, path string, args ...string) (*process, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(limit, func() { cancel(errTimeout) })
	defer timer.Stop()

	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = env
	stdout := &boundedBuffer{full: cancel}
	stderr := &boundedBuffer{full: cancel}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = 5 * time.Second // for a child that escaped and holds the pipes open

	peak := func(*os.ProcessState) int64 { return 0 }
	start := time.Now()
	err := cmd.Start()
	if err == nil {
		if watch {
			peak = watchPeak(cmd.Process.Pid)
		}
		err = cmd.Wait()
	}
	elapsed := time.Since(start)
	peakBytes := peak(cmd.ProcessState)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if cmd.ProcessState == nil {
		return nil, err // it never started
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil, errors.New("left a process behind that holds its output open")
	}
	return &process{
		stdout:  stdout.buf.Bytes(),
		stderr:  stderr.buf.Bytes(),
		status:  cmd.ProcessState.String(),
		elapsed: elapsed,
		peak:    peakBytes,
	}, nil
}

// A boundedBuffer keeps what is written to it, up to maxOutput bytes; beyond
// that it calls full.
type boundedBuffer struct {
	buf  bytes.Buffer
	full func(error)
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > maxOutput {
		b.full(errOutput)
		return 0, errOutput
	}
	return b.buf.Write(p)
}

// environment is the environment of this process with some variables set, and
// unset where the value is empty.
func environment(set ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(have string) bool {
		name, _, _ := strings.Cut(have, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	for _, s := range set {
		if !strings.HasSuffix(s, "=") {
			env = append(env, s)
		}
	}
	return env
}
