package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// notLaunched returns the transport of a program that nobody has launched.
func notLaunched(t *testing.T) *Transport {
	t.Helper()
	if isLaunched, _ := launched(func(string) string { return "" }); isLaunched {
		t.Fatal("a process without an environment counts as launched")
	}
	job := new(Transport)
	job.size, job.carrier = 1, &alone{transport: job}
	return job
}

func TestAlone(t *testing.T) {
	t.Logf("-seed %d", *seed)
	job := notLaunched(t)
	if err := traffic(job, []string{fmt.Sprint(*seed), "100"}); err != nil {
		t.Error(err)
	}
	if job.Rank() != 0 || job.Size() != 1 || job.Stopping() || job.Stopping() {
		t.Errorf("rank %d of %d, stopping %t", job.Rank(), job.Size(), job.Stopping())
	}
	got := make(chan error, 2)
	note := func(err error) { got <- err }
	job.Send(0, []byte("abc"), note)
	job.Receive(0, make([]byte, 2), note)
	if sent, received := <-got, <-got; sent != nil || received == nil || received.Error() != "mpi: rank 0 has sent 3 bytes, 2 were to be received" {
		t.Errorf("errors %v and %v", sent, received)
	}
	if err := job.Close(); err != nil {
		t.Error(err)
	}
	if job.Send(0, nil, note); <-got != errClosed {
		t.Error("a message after Close")
	}
}

func TestAloneMissesMessages(t *testing.T) {
	job := notLaunched(t)
	job.Receive(0, make([]byte, 2), func(error) {})
	if err := job.Close(); err == nil || !strings.Contains(err.Error(), "1 messages to itself") {
		t.Errorf("error %v", err)
	}
}

func TestCallsNoRank(t *testing.T) {
	job := notLaunched(t)
	for _, rank := range []int{-1, 1} {
		func() {
			defer func() {
				if got, want := recover(), fmt.Sprintf("mpi: there is no rank %d in a job of 1", rank); got != want {
					t.Errorf("got %v, want %s", got, want)
				}
			}()
			job.Send(rank, nil, func(error) {})
		}()
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	err := notLaunched(t).call(func(*Transport) error { panic("index out of sight") })
	if _, ok := errors.AsType[panicked](err); !ok || !strings.Contains(err.Error(), "panic: index out of sight\n\ngoroutine ") || !strings.Contains(err.Error(), "alone_test.go") {
		t.Errorf("got %v", err)
	}
}

// The last words name what Fail was given once, and leave out no other error.
func TestBrief(t *testing.T) {
	cause := errors.New("lost")
	sum, mean, disk := fmt.Errorf("a sum: %w", cause), fmt.Errorf("a mean: %w", cause), errors.New("no space left")
	for _, c := range []struct {
		err  error
		want string
	}{
		{cause, "lost"},
		{disk, "no space left"},
		{errors.Join(sum, disk, mean), "a sum: lost\nno space left"},
		{errors.Join(errors.Join(sum, mean)), "a sum: lost"},
		{errors.Join(sum, errors.Join(disk, mean)), "a sum: lost\nno space left"},
		{errors.Join(disk, errors.Join(mean, sum), cause), "no space left\na mean: lost"},
		{fmt.Errorf("step 3: %w, then %w", sum, mean), "step 3: a sum: lost, then a mean: lost"},
	} {
		job := notLaunched(t)
		job.cause = cause
		if got := job.brief(c.err).Error(); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.err, got, c.want)
		}
		job.cause = nil
		if got := job.brief(c.err); got != c.err {
			t.Errorf("%q becomes %q without Fail", c.err, got)
		}
	}
}

func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		env      string
		launched bool
		ranks    int
	}{
		{"", false, 0},
		{"PMI_RANK=0 PMI_SIZE=4 PMI_FD=9", true, 4},
		{"PMI_RANK=0 PMI_SIZE=1", true, 1},
		{"PMIX_RANK=3 PMIX_NAMESPACE=x", true, 0},
		{"OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0", true, 2},
		{"SLURM_STEP_NUM_TASKS=8", true, 8},
		{"SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_NTASKS=8", false, 1}, // the script of a job
		{"SLURM_STEP_NUM_TASKS=1 PMI_FD=7", true, 1},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		if launched, ranks := launched(func(name string) string { return env[name] }); launched != c.launched || ranks != c.ranks {
			t.Errorf("%s: launched %t, ranks %d, want %t, %d", c.env, launched, ranks, c.launched, c.ranks)
		}
	}
}
