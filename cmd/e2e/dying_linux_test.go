package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var everyMessage = flag.Bool("every-message", false, "let TestMachines kill each rank at each of its messages, rather than at -kills of them; a quarter of an hour, so with -timeout 1h")

// dyingMain is a file beside testdata/guide/machines's, whose messages go through it. It counts what happens to a rank
// from NewJob to its last message: it is about to send, a message has arrived, or it asks whether to stop. The rank
// DYING_RANK kills itself when number DYING_AT happens, from 1, once. Files in the folder DYING tell what has happened:
//
//	count-N   how much of it rank N counts if nobody dies
//	died      is made when the rank dies, and keeps ranks of later jobs from it
//	again     is made when a rank of a later job begins
const dyingMain = `package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/asyncgen/asyncgen/device/mpi"
	"github.com/asyncgen/asyncgen/device/wire"
)

type dying struct {
	*mpi.Transport
	at, count atomic.Int64
}

func newDying(t *mpi.Transport) wire.Transport {
	ours = &dying{Transport: t}
	if os.Getenv("DYING_RANK") == fmt.Sprint(t.Rank()) {
		at, _ := strconv.ParseInt(os.Getenv("DYING_AT"), 10, 64)
		ours.at.Store(at)
	}
	if _, err := os.Stat(inDying("died")); err == nil {
		ours.at.Store(0)
		write("again", "")
	}
	return ours
}

var ours *dying

func inDying(name string) string { return filepath.Join(os.Getenv("DYING"), name) }

// write makes a file, unless there is one, or no folder for it.
func write(name, text string) {
	if os.Getenv("DYING") == "" {
		return
	}
	f, err := os.OpenFile(inDying(name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o666)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil && !os.IsExist(err) {
		panic(err)
	}
}

func (d *dying) happens() {
	if d.count.Add(1) != d.at.Load() {
		return
	}
	write("died", "")
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (d *dying) Send(to int, msg []byte, done func(error)) {
	d.happens()
	d.Transport.Send(to, msg, done)
}

func (d *dying) Receive(from int, buf []byte, done func(error)) {
	d.Transport.Receive(from, buf, func(err error) {
		d.happens()
		done(err)
	})
}

func (d *dying) Close() error {
	err := d.Transport.Close()
	write("count-"+fmt.Sprint(d.Rank()), fmt.Sprint(d.count.Load()))
	return err
}

func stopping(t *mpi.Transport) bool {
	ours.happens()
	return t.Stopping()
}
`

// A dyingJob is a job of two steps, with a checkpoint before each and in the end.
type dyingJob struct {
	*machines
	ranks, zero int
	short       string // what it prints
	counts      []int  // by rank: of what dyingMain counts
}

// testKillAtMessages kills a rank at a message of a job, from the first one to the last. Among the messages are those
// of NewJob, the weights, gradients, what Zero and checkpoints share, and results.
func (m *machines) testKillAtMessages(t *testing.T) {
	whole := m.dying(t)
	jobs := map[[2]int]*dyingJob{}
	job := func(ranks, zero int) *dyingJob {
		at := [2]int{ranks, zero}
		if jobs[at] == nil {
			jobs[at] = whole.newDyingJob(t, ranks, zero)
		}
		return jobs[at]
	}
	var longest time.Duration
	if !*everyMessage {
		for range *kills {
			j := job(2<<m.random.IntN(2), m.random.IntN(3))
			who := m.random.IntN(j.ranks)
			longest = max(longest, j.killAt(t, who, 1+m.random.IntN(j.counts[who])))
		}
		t.Logf("a job went on without a rank for %v at most, until the next one was there", longest)
		return
	}
	for _, ranks := range []int{2, 4} {
		for zero := range 3 {
			j := job(ranks, zero)
			longest = 0
			for who, n := range j.counts {
				for at := range n {
					longest = max(longest, j.killAt(t, who, 1+at))
				}
			}
			t.Logf("%d ranks, Zero %d: each rank was killed at each of %d; a job went on without a rank for %v at most, until the next one was there",
				ranks, zero, j.counts, longest)
		}
	}
}

// dying builds the program with dyingMain.
func (m *machines) dying(t *testing.T) *machines {
	t.Helper()
	dir := filepath.Join("testdata", "guide", "machines")
	text := readText(t, filepath.Join(dir, "main.go"))
	for _, edit := range [][2]string{{"wire.NewJob(ranks, ", "wire.NewJob(newDying(ranks), "}, {"!ranks.Stopping()", "!stopping(ranks)"}} {
		if strings.Count(text, edit[0]) != 1 {
			t.Fatalf("%q is not in the program", edit[0])
		}
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	main, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := *m
	whole.program += "-dying"
	buildOverlaid(t, map[string][]byte{filepath.Join(main, "main.go"): []byte(text), filepath.Join(main, "dying.go"): []byte(dyingMain)}, whole.program, "./"+dir)
	return &whole
}

// start starts the job by again.sh, and ranks by rank.sh.
func (j *dyingJob) start(t *testing.T, dir string, env ...string) *run {
	t.Helper()
	command := []string{"testdata/recipes/rank.sh", j.program, "-steps", "2", "-every", "1", "-dir", dir, "-zero", strconv.Itoa(j.zero)}
	return j.startCommand(t, true, j.ranks, command, env...)
}

// newDyingJob runs a job in which nobody dies.
func (m *machines) newDyingJob(t *testing.T, ranks, zero int) *dyingJob {
	t.Helper()
	j := &dyingJob{machines: m, ranks: ranks, zero: zero}
	notes := t.TempDir()
	r := j.start(t, t.TempDir(), "DYING="+notes)
	code := r.wait(t)
	want, err := exec.Command(m.program, "-steps", "2").Output()
	if j.short = string(want); err != nil || code != 0 || r.stdout.String() != j.short {
		t.Fatalf("%d ranks, Zero %d: exit code %d, printed\n%s%swant, error %v,\n%s", ranks, zero, code, &r.stdout, &r.stderr, err, want)
	}
	for rank := range ranks {
		n, err := strconv.Atoi(readText(t, filepath.Join(notes, fmt.Sprint("count-", rank))))
		if err != nil || n < 20 {
			t.Fatalf("%d ranks, Zero %d: rank %d counts %d, error %v", ranks, zero, rank, n, err)
		}
		j.counts = append(j.counts, n)
	}
	return j
}

// killAt has a rank die when something happens to it. Again.sh runs the job once more, from its last checkpoint. killAt
// returns the time between, which has to be 10 seconds at most.
func (j *dyingJob) killAt(t *testing.T, who, at int) (took time.Duration) {
	t.Helper()
	what := fmt.Sprintf("%d ranks, Zero %d, rank %d killed at %d", j.ranks, j.zero, who, at)
	dir, notes := t.TempDir(), t.TempDir()
	r := j.start(t, dir, "DYING="+notes, fmt.Sprint("DYING_RANK=", who), fmt.Sprint("DYING_AT=", at))
	code := r.wait(t)
	died, err := os.Stat(filepath.Join(notes, "died"))
	if err != nil {
		t.Fatal(what, ": ", err)
	}
	again, err := os.Stat(filepath.Join(notes, "again"))
	if err == nil {
		took = again.ModTime().Sub(died.ModTime())
	}
	printed, errors := r.stdout.String(), r.stderr.String()
	if err != nil || code != 0 || took > 10*time.Second || !strings.HasSuffix(printed, "\n"+j.short) {
		t.Errorf("%s: again after %v, error %v, exit code %d, printed\n%s%swant in the end\n%s", what, took, err, code, printed, errors, j.short)
	}
	named := fmt.Sprintf("rank.sh: rank %d of %d, on ", who, j.ranks)
	if strings.Count(errors, "rank.sh: ") != 1 || !strings.Contains(errors, named) || strings.Contains(errors, "mpi: ") {
		t.Errorf("%s: printed\n%swant one error, %q", what, errors, named)
	}
	j.mustBeWhole(t, dir)
	return took
}
