package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func init() {
	// stops runs steps until it has to stop, and prints the step. At a step, a rank gets a signal. Arguments: both, and
	// the signal.
	programs["stops"] = func(t *Transport, args []string) error {
		when, _ := strconv.Atoi(args[0])
		who, _ := strconv.Atoi(args[1])
		sent, _ := strconv.Atoi(args[2])
		noticed := make(chan os.Signal, 1)
		signal.Notify(noticed, syscall.Signal(sent))
		for step := range 1000 {
			if step == when && t.Rank() == who {
				syscall.Kill(syscall.Getpid(), syscall.Signal(sent))
				<-noticed
			}
			if t.Stopping() {
				fmt.Println("stops at", step)
				return nil
			}
		}
		fmt.Println("ends")
		return nil
	}
	// waits tells by a pipe that all ranks have called Stopping, and runs steps until it has to stop.
	programs["waits"] = func(t *Transport, args []string) error {
		if t.Stopping() || t.Stopping() {
			return errors.New("there was no signal yet")
		}
		if t.Rank() == 0 {
			if err := os.WriteFile(args[0], []byte{1}, 0); err != nil {
				return err
			}
		}
		for !t.Stopping() {
		}
		fmt.Println("stops")
		return nil
	}
}

// TestStopping sends a signal to one rank: all stop at the same step, soon after. Where the last step is over, they
// end.
func TestStopping(t *testing.T) {
	for _, c := range []struct{ ranks, when, who, signal int }{
		{1, 3, 0, int(syscall.SIGTERM)}, {2, 1, 1, int(syscall.SIGTERM)}, {4, 20, 2, int(syscall.SIGUSR1)}, {4, 999, 0, int(syscall.SIGTERM)}, {2, 2000, 0, int(syscall.SIGTERM)},
	} {
		o := start(t, how{ranks: c.ranks}, "stops", c.when, c.who, c.signal)
		o.mustEnd(t, 0)
		lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
		slices.Sort(lines)
		want := []string{"ends"}
		if c.when < 999 {
			want = []string{fmt.Sprint("stops at ", c.when+1), fmt.Sprint("stops at ", c.when+2)}
		}
		if len(lines) != c.ranks || lines[0] != lines[c.ranks-1] || !slices.Contains(want, lines[0]) {
			t.Errorf("%+v: ranks print\n%swant one of %q from each", c, o.stdout, want)
		}
	}
}

// TestStoppingEnds sends signals to mpiexec, which passes them on.
func TestStoppingEnds(t *testing.T) {
	for _, sent := range []os.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		pipe := filepath.Join(t.TempDir(), "runs")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		o := start(t, how{ranks: 3, started: func(mpiexec *os.Process) {
			if _, err := os.ReadFile(pipe); err != nil {
				t.Error(err)
			}
			if err := mpiexec.Signal(sent); err != nil {
				t.Error(err)
			}
		}}, "waits", pipe)
		o.mustEnd(t, 0)
		if want := strings.Repeat("stops\n", 3); o.stdout != want {
			t.Errorf("%v: ranks print\n%swant\n%s", sent, o.stdout, want)
		}
	}
}
