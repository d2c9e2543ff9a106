package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An outcome is how a job has ended.
type outcome struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// A how is the way in which mpiexec is started.
type how struct {
	ranks   int
	network bool // messages go through the loopback of a network namespace, and not through memory
	env     []string
	started func(mpiexec *os.Process) // unless nil, is called when mpiexec runs
}

// mpiexec returns the launcher, or skips the test.
func mpiexec(t testing.TB) string {
	t.Helper()
	path := os.Getenv("ASYNCGEN_TEST_MPIEXEC")
	if path == "" {
		t.Skip("ASYNCGEN_TEST_MPIEXEC names no mpiexec of MPICH 5, as pip install mpich has it")
	}
	return path
}

// limit is how long a job may take before a test ends it and fails. It decides nothing else.
const limit = 2 * time.Minute

// start runs a program under mpiexec, and checks that no process of it is left.
func start(t testing.TB, h how, program string, args ...any) outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := []string{mpiexec(t), "-n", strconv.Itoa(h.ranks), self}
	mark := fmt.Sprintf("ASYNCGEN_TEST_JOB=%d-%d", os.Getpid(), time.Now().UnixNano())
	env := append(os.Environ(), mark, "TMPDIR="+t.TempDir(), programVariable+"="+strings.Trim(fmt.Sprintln(append([]any{program}, args...)...), "\n"))
	if h.network {
		if err := namespaces(); err != nil {
			t.Skip(err)
		}
		// Without these settings MPICH goes through memory, and so does its other library for networks, UCX.
		env = append(env, "MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp")
	}
	if namespaces() == nil {
		command = append([]string{"unshare", "-n", "-m", "sh", "-c", prepare, "sh"}, command...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(env, h.env...)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if h.started != nil {
		h.started(cmd.Process)
	}
	err = cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	o := outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(begin)}
	if ctx.Err() != nil {
		t.Errorf("the job had not ended after %v", limit)
	}
	for _, pid := range processes(mark) {
		if !ends(pid) {
			t.Errorf("process %d of the job is left", pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return o
}

// processes returns the processes that have a variable in their environment.
func processes(variable string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), variable) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ends waits until a process has ended, which it has to do within 10 seconds. mpiexec may end before the ranks that it
// kills.
func ends(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
	return err != nil || n > 0
}

// prepare gives a job a network and a /dev/shm of its own. MPICH leaves memory there when a job is ended.
const prepare = `ip link set lo up && mount -t tmpfs none /dev/shm && exec "$@"`

// namespaces returns why jobs can't have that, or nil.
var namespaces = sync.OnceValue(func() error {
	if out, err := exec.Command("unshare", "-n", "-m", "sh", "-c", prepare, "sh", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("no network namespace here: %w %s", err, out)
	}
	return nil
})

// mustEnd fails the test if a job has not ended with a status and with texts on standard error.
func (o outcome) mustEnd(t testing.TB, status int, texts ...string) {
	t.Helper()
	bad := o.status != status
	for _, text := range texts {
		bad = bad || !strings.Contains(o.stderr, text)
	}
	if bad || len(texts) == 0 && o.stderr != "" {
		t.Errorf("the job ends with status %d, want %d, and prints\n%s%s\nwant %q", o.status, status, o.stdout, o.stderr, texts)
	}
}

// TestTraffic sends random messages between 1, 2 and 4 ranks: through memory, and through the loopback of a network
// namespace.
func TestTraffic(t *testing.T) {
	for _, h := range []how{{}, {network: true}} {
		for _, h.ranks = range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("ranks=%d,network=%t", h.ranks, h.network), func(t *testing.T) {
				t.Logf("-seed %d", *seed)
				o := start(t, h, "traffic", *seed, 120/h.ranks)
				o.mustEnd(t, 0)
				if sent, _ := strconv.Atoi(strings.TrimSpace(o.stdout)); h.network && h.ranks > 1 && sent < 1<<20 {
					t.Errorf("%d bytes have come through the network", sent)
				}
			})
		}
	}
}
