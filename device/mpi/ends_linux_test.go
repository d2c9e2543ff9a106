package mpi

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 3, "how many jobs TestKill starts")

func init() {
	programs["ends"] = func(t *Transport, args []string) error {
		if len(args) > 1 && args[1] != strconv.Itoa(t.Rank()) {
			return <-stuck(t, (t.Rank()+1)%t.Size())
		}
		switch args[0] {
		case "well":
			fmt.Println("the last line of", t.Rank())
			return nil
		case "error":
			return errors.New("no such data set")
		case "panic":
			panic("index out of sight")
		case "nil":
			var nothing *int
			*nothing = 1
		case "exit":
			os.Exit(7)
		case "fail":
			err := stuck(t, 1-t.Rank())
			t.Fail(errors.New("the deadline has passed"))
			t.Send(1-t.Rank(), nil, func(later error) {
				if later == nil {
					panic("a message after Fail")
				}
			})
			if got := <-err; got == nil || !strings.Contains(got.Error(), "deadline") {
				panic(fmt.Sprint("a receive ends with ", got))
			}
			return nil // Run knows better
		case "lost":
			cause := errors.New("the deadline has passed")
			t.Fail(cause)
			return errors.Join(errors.Join(fmt.Errorf("a sum: %w", cause), errors.New("no space left"), fmt.Errorf("a mean: %w", cause)), t.Close())
		case "hang":
			stuck(t, 1-t.Rank())
			t.Fail(errors.New("the deadline has passed"))
			select {}
		}
		return nil
	}
	programs["absent"] = func(*Transport, []string) error { return nil }
	programs["lengths"] = lengths
}

// stuck begins to receive what nobody sends.
func stuck(t *Transport, from int) <-chan error {
	mem, _ := bytesOf(1)
	ended := make(chan error, 1)
	t.Receive(from, mem, func(err error) { ended <- err })
	return ended
}

// lengths has rank 0 send a message of a length and rank 1 receive it with another.
func lengths(t *Transport, args []string) error {
	n, _ := strconv.Atoi(args[t.Rank()])
	mem, _ := bytesOf(n)
	ended := make(chan error)
	if t.Rank() == 0 {
		t.Send(1, mem, func(err error) { ended <- err })
	} else {
		t.Receive(0, mem, func(err error) { ended <- err })
	}
	return <-ended
}

// An ordinary exit of Go made mpiexec fail jobs that were right, about every second one.
func TestEndsWell(t *testing.T) {
	for range 20 {
		o := start(t, how{ranks: 2}, "ends", "well")
		o.mustEnd(t, 0)
		if n := strings.Count(o.stdout, "the last line of"); n != 2 {
			t.Errorf("%d ranks have printed:\n%s", n, o.stdout)
		}
	}
}

func TestEndsBadly(t *testing.T) {
	for _, c := range []struct {
		what   string
		status int
		text   string
	}{
		{"error", 1, "mpi: rank 1 of 2: no such data set\n"},
		{"panic", 2, "mpi: rank 1 of 2: panic: index out of sight\n"},
		// A signal, which a library may take for itself.
		{"nil", 2, "mpi: rank 1 of 2: panic: runtime error: invalid memory address"},
		{"fail", 1, "mpi: rank 1 of 2: the deadline has passed\n"},
		{"lost", 1, "mpi: rank 1 of 2: a sum: the deadline has passed\nno space left\n"},
		{"hang", 1, "mpi: rank 1 of 2: the deadline has passed\n"},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := start(t, how{ranks: 2}, "ends", c.what, 1)
			o.mustEnd(t, c.status, c.text)
			if n := strings.Count(o.stderr, "the deadline has passed"); n > 1 {
				t.Errorf("the cause is printed %d times:\n%s", n, o.stderr)
			}
		})
	}
	if o := start(t, how{ranks: 2}, "ends", "exit", 1); o.status == 0 {
		t.Error("mpiexec ends with status 0 when a rank has called os.Exit(7)")
	}
}

// A rank that ends before it calls Run, or never begins, doesn't keep the others waiting.
func TestAbsent(t *testing.T) {
	start(t, how{ranks: 3, env: []string{"ASYNCGEN_RANK_TIMEOUT=1s"}}, "absent").mustEnd(t, 1, "mpi: not all ranks of the job have come to Run within 1s\n")
}

func TestLengths(t *testing.T) {
	for _, c := range [][2]int{{5, 10}, {10, 5}, {0, 1}, {1, 0}, {1 << 20, 1<<20 + 1}, {1<<20 + 1, 1 << 20}} {
		text := fmt.Sprintf("rank 0 has sent %d bytes, %d were to be received", c[0], c[1])
		if c[0] > c[1] {
			text = fmt.Sprintf("rank 0 has sent more than %d bytes, which were to be received", c[1])
		}
		start(t, how{ranks: 2}, "lengths", c[0], c[1]).mustEnd(t, 1, "mpi: rank 1 of 2: "+text)
	}
}

func TestNativeABIIsRefused(t *testing.T) {
	native := filepath.Join(filepath.Dir(filepath.Dir(mpiexec(t))), "lib", "libmpi.so.12")
	if _, err := os.Stat(native); err != nil {
		t.Skip(err)
	}
	start(t, how{ranks: 2, env: []string{"ASYNCGEN_LIBMPI=" + native}}, "ends", "well").mustEnd(t, 1, native+" has an ABI of its own: install ", "pip install mpich")
}

// TestKill has the system kill a rank in the middle of traffic.
func TestKill(t *testing.T) {
	t.Logf("-seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	for range *kills {
		const ranks, messages = 4, 30
		o := start(t, how{ranks: ranks, network: random.IntN(2) == 0}, "traffic", *seed, messages, random.IntN(ranks), 1+random.IntN(2*ranks*messages))
		// Either mpiexec sees it first, or another rank, whose connection breaks.
		if o.status == 0 || !strings.Contains(o.stdout, "EXIT CODE: 9") && !strings.Contains(o.stderr, "mpi: rank ") {
			t.Errorf("mpiexec ends with status %d and prints\n%s%s", o.status, o.stdout, o.stderr)
		}
		if o.took > 10*time.Second {
			t.Errorf("the job ends after %v", o.took)
		}
	}
}
