package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var everyMessage = flag.Bool("every-message", false, "let TestMachines kill a rank at each message up to the end of a training step, rather than at -kills of them; some minutes")

// dyingMain is a file beside testdata/guide/machines's, whose transport goes through it. A process whose rank is
// DYING_RANK kills itself at its message DYING_AT, counted from 1, unless the file DYING_ONCE exists, which it makes:
// before the message begins or, with DYING_HOW=done, when the message has been sent or has arrived. Without DYING_AT,
// rank 0 writes how many messages there were up to the end of step DYING_STEP to DYING_ONCE.
const dyingMain = `package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/asyncgen/asyncgen/device/wire"
)

type dying struct {
	wire.Transport
	begun atomic.Int64
	at    int64
	late  bool
}

var ours *dying

func newDying(t wire.Transport) wire.Transport {
	ours = &dying{Transport: t, late: os.Getenv("DYING_HOW") == "done"}
	if os.Getenv("DYING_RANK") == fmt.Sprint(t.Rank()) {
		ours.at, _ = strconv.ParseInt(os.Getenv("DYING_AT"), 10, 64)
	}
	return ours
}

func (d *dying) Send(to int, msg []byte, done func(error)) { d.Transport.Send(to, msg, d.next(done)) }

func (d *dying) Receive(from int, buf []byte, done func(error)) { d.Transport.Receive(from, buf, d.next(done)) }

func (d *dying) next(done func(error)) func(error) {
	if d.begun.Add(1) != d.at {
		return done
	}
	f, err := os.OpenFile(os.Getenv("DYING_ONCE"), os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return done // it has died before
	}
	f.Close()
	if d.late {
		return func(error) { die() }
	}
	die()
	return done
}

func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (d *dying) ended(step int) {
	if d.Rank() == 0 && os.Getenv("DYING_STEP") == fmt.Sprint(step) {
		os.WriteFile(os.Getenv("DYING_ONCE"), fmt.Append(nil, d.begun.Load()), 0o666)
	}
}
`

// testKillAtMessages kills a rank at a message. Among the messages are all of the start, of a step, and of what is
// gathered for a checkpoint.
func (m *machines) testKillAtMessages(t *testing.T) {
	dir := filepath.Join("testdata", "guide", "machines")
	text := readText(t, filepath.Join(dir, "main.go"))
	for _, edit := range [][2]string{
		{"wire.NewJob(ranks, ", "wire.NewJob(newDying(ranks), "},
		{"opt.Minimize(net.Loss(nn.MSELoss, x, y))\n", "opt.Minimize(net.Loss(nn.MSELoss, x, y))\n\t\tif os.Getenv(\"DYING_STEP\") == fmt.Sprint(step) {\n\t\t\tasyncrt.WaitAll()\n\t\t\tours.ended(step)\n\t\t}\n"},
		{"import (\n", "import (\n\t\"os\"\n"},
	} {
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
	whole.program = m.program + "-dying"
	buildOverlaid(t, map[string][]byte{filepath.Join(main, "main.go"): []byte(text), filepath.Join(main, "dying.go"): []byte(dyingMain)}, whole.program, "./"+dir)
	for _, ranks := range []int{2, 4} {
		n := whole.messages(t, ranks, 6) // a checkpoint is made before step 5
		if n < 10*ranks {
			t.Fatalf("%d ranks: %d messages up to step 6", ranks, n)
		}
		at := m.random.Perm(n)
		if !*everyMessage {
			at = at[:min(n, (*kills+1)/2)]
		}
		var longest time.Duration
		for _, i := range at {
			longest = max(longest, whole.killAt(t, ranks, 1+i))
		}
		t.Logf("%d ranks: a rank was killed at %d of %d messages up to step 6; the job ended %v later at most", ranks, len(at), n, longest)
	}
}

// messages returns how many messages rank 0 has begun to send or to receive when it has ended a step.
func (m *machines) messages(t *testing.T, ranks, step int) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "count")
	r := m.start(t, false, ranks, t.TempDir(), "DYING_ONCE="+file, fmt.Sprint("DYING_STEP=", step))
	if code := r.wait(t); code != 0 || r.stdout.String() != m.want {
		t.Fatalf("%d ranks: exit code %d, printed\n%s%swant\n%s", ranks, code, &r.stdout, &r.stderr, m.want)
	}
	n, err := strconv.Atoi(readText(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// killAt has a rank of a job die at a message, and another job go on. It returns how long the first went on without
// the rank, which has to be 10 seconds at most.
func (m *machines) killAt(t *testing.T, ranks, at int) time.Duration {
	t.Helper()
	dir, once := t.TempDir(), filepath.Join(t.TempDir(), "died")
	how := []string{"begun", "done"}[m.random.IntN(2)]
	who := m.random.IntN(ranks)
	r := m.start(t, false, ranks, dir, "DYING_ONCE="+once, fmt.Sprint("DYING_RANK=", who), fmt.Sprint("DYING_AT=", at), "DYING_HOW="+how)
	code, end := r.wait(t), time.Now()
	died, err := os.Stat(once)
	if err != nil {
		t.Fatalf("rank %d of %d did not reach message %d", who, ranks, at)
	}
	took := end.Sub(died.ModTime())
	if code == 0 || strings.Contains(r.stdout.String(), "weights") || took > 10*time.Second {
		t.Errorf("rank %d of %d killed at message %d (%s): %v later exit code %d, printed\n%s%s", who, ranks, at, how, took, code, &r.stdout, &r.stderr)
	}
	r = m.start(t, false, ranks, dir)
	if code := r.wait(t); code != 0 || r.stdout.String() != m.want {
		t.Errorf("after rank %d of %d was killed at message %d (%s): exit code %d, printed\n%s%swant\n%s", who, ranks, at, how, code, &r.stdout, &r.stderr, m.want)
	}
	m.mustBeWhole(t, dir)
	return took
}
