package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
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

	"github.com/asyncgen/asyncgen/internal/sametemp"
)

var (
	kills    = flag.Int("kills", 3, "how many jobs TestMachines kills a rank of")
	killSeed = flag.Uint64("killseed", 0, "which ranks, and when; 0: a new one")
)

// TestMachines trains testdata/guide/machines on 1, 2 and 4 ranks, and interrupts it in several ways. The weights have
// the same bits in the end. The programs of overRanks print the same on 1, 2 and 4 ranks.
func TestMachines(t *testing.T) {
	mpiexec := os.Getenv("ASYNCGEN_TEST_MPIEXEC")
	if mpiexec == "" {
		t.Skip("ASYNCGEN_TEST_MPIEXEC names no mpiexec of MPICH 5, as pip install mpich has it")
	}
	if *killSeed == 0 {
		*killSeed = uint64(time.Now().UnixNano())
	}
	t.Logf("-killseed %d", *killSeed)
	m := &machines{mpiexec: mpiexec, program: filepath.Join(sametemp.Dir(t), "machines"), random: rand.New(rand.NewPCG(*killSeed, 0))}
	if out, err := exec.Command("go", "build", "-o", m.program, "./testdata/guide/machines").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	alone, err := exec.Command(m.program).Output()
	if m.want = string(alone); err != nil || !strings.Contains(m.want, " steps, weights ") {
		t.Fatalf("without mpiexec it prints %q, error %v", alone, err)
	}
	t.Run("bits", m.testBits)
	t.Run("programs", m.testPrograms)
	t.Run("hosts", m.testHosts)
	t.Run("kill", m.testKill)
	t.Run("kill at messages", m.testKillAtMessages)
	t.Run("stop", m.testStop)
	t.Run("stuck", m.testStuck)
	t.Run("differ", m.testDiffer)
}

// machines is the program and how to run it.
type machines struct {
	mpiexec, program string
	want             string // what it prints
	random           *rand.Rand
}

// A run is one that has begun.
type run struct {
	cmd            *exec.Cmd
	mark           string // a variable in the environment of all its processes
	stdout, stderr bytes.Buffer
}

// start starts the program by mpiexec, by way of again.sh if so asked. A folder for checkpoints may be "".
func (m *machines) start(t *testing.T, again bool, ranks int, dir string, env ...string) *run {
	t.Helper()
	return m.startCommand(t, again, ranks, []string{m.program, "-every", "5", "-dir", dir, "-zero", strconv.Itoa(m.random.IntN(3))}, env...)
}

// startCommand is start of another program.
func (m *machines) startCommand(t *testing.T, again bool, ranks int, command []string, env ...string) *run {
	t.Helper()
	args := append([]string{m.mpiexec, "-n", strconv.Itoa(ranks)}, command...)
	if again {
		args = append([]string{"testdata/recipes/again.sh"}, args...)
	}
	if hasNamespaces() {
		args = append([]string{"unshare", "-n", "-m", "sh", "-c", namespaces, "sh"}, args...)
	}
	r := &run{cmd: exec.Command(args[0], args[1:]...), mark: fmt.Sprintf("ASYNCGEN_TEST_JOB=%d-%d", os.Getpid(), time.Now().UnixNano())}
	r.cmd.Env = append(os.Environ(), r.mark, "AGAIN_PAUSE=0", "TMPDIR="+t.TempDir())
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.WaitDelay = &r.stdout, &r.stderr, 10*time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range r.processes("") {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return r
}

// namespaces gives a job a network and a /dev/shm of its own, in which MPICH leaves memory when a job is ended.
const namespaces = `ip link set lo up && mount -t tmpfs none /dev/shm && exec "$@"`

var hasNamespaces = sync.OnceValue(func() bool {
	return exec.Command("unshare", "-n", "-m", "sh", "-c", namespaces, "sh", "true").Run() == nil
})

// processes returns the processes of r that run a program, or all.
func (r *run) processes(program string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), r.mark) && (program == "" || exe == program) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// wait waits for the end, and for that of all processes, which has to come within 10 seconds. It returns the exit code.
func (r *run) wait(t *testing.T) int {
	t.Helper()
	r.cmd.Wait()
	for _, pid := range r.processes("") {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); err == nil && n == 0 {
			t.Errorf("process %d is left", pid)
		}
		unix.Close(fd)
	}
	return r.cmd.ProcessState.ExitCode()
}

// afterSaves has f called when n files have taken their places in a folder.
func afterSaves(t *testing.T, dir string, n int, f func()) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO)
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer unix.Close(fd)
		buf := make([]byte, 4096)
		for n > 0 {
			got, err := unix.Read(fd, buf)
			if err != nil {
				return
			}
			for at := 0; at < got; n-- { // a record is 16 bytes and a name, whose length is in the last four of them
				at += 16 + int(uint32(buf[at+12])|uint32(buf[at+13])<<8)
			}
		}
		f()
	}()
}

// mustBeWhole fails the test if there is anything in a folder but checkpoints, or if the last one doesn't give the
// result.
func (m *machines) mustBeWhole(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Errorf("%d checkpoints, error %v", len(files), err)
	}
	for _, f := range files {
		if ok, _ := filepath.Match("step-*.safetensors", f.Name()); !ok {
			t.Errorf("%s is left of a checkpoint", f.Name())
		}
	}
	if out, err := exec.Command(m.program, "-dir", dir).CombinedOutput(); err != nil || string(out) != m.want {
		t.Errorf("from the last checkpoint, it prints %q, error %v, want %q", out, err, m.want)
	}
}

func (m *machines) testBits(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		r := m.start(t, false, ranks, "")
		if code := r.wait(t); code != 0 || r.stdout.String() != m.want || r.stderr.Len() > 0 {
			t.Errorf("%d ranks: exit code %d, printed\n%s%swant\n%s", ranks, code, &r.stdout, &r.stderr, m.want)
		}
	}
}

// testPrograms runs the programs of overRanks, as written and rewritten.
func (m *machines) testPrograms(t *testing.T) {
	all := buildPrograms(t)
	for name, golden := range overRanks {
		want := readText(t, golden)
		for _, form := range formsOf(all, name) {
			for _, ranks := range []int{1, 2, 4} {
				r := m.startCommand(t, false, ranks, []string{all.bin, form, "-small", "-ranks"})
				if code := r.wait(t); code != 0 || r.stdout.String() != want {
					t.Errorf("%s on %d ranks: exit code %d, printed\n%s%swant, as in %s,\n%s", form, ranks, code, &r.stdout, &r.stderr, golden, want)
				}
			}
		}
	}
}

// hosts makes two machines out of network namespaces, with a bridge between them and this one, and runs a command.
const hosts = `set -e
mount -t tmpfs none /dev/shm
mount -t tmpfs none /run
ip link set lo up
ip link add bridge type bridge
ip addr add 10.99.0.1/24 dev bridge
ip link set bridge up
for i in 2 3; do
	ip netns add 10.99.0.$i
	ip link add to$i type veth peer name eth0 netns 10.99.0.$i
	ip link set to$i master bridge up
	ip -n 10.99.0.$i addr add 10.99.0.$i/24 dev eth0
	ip -n 10.99.0.$i link set eth0 up
	ip -n 10.99.0.$i link set lo up
done
"$@"
sed -n 's/^ *to2: *\([0-9]*\).*/\1/p' /proc/net/dev`

// asSSH takes the place of ssh: options, host, command.
const asSSH = `#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" sh -c "$*"
`

// testHosts has mpiexec start ranks on two machines, which a file names.
func (m *machines) testHosts(t *testing.T) {
	if out, err := exec.Command("unshare", "-n", "-m", "sh", "-c", hosts, "sh", "true").CombinedOutput(); err != nil {
		t.Skipf("no machines of network namespaces here: %v %s", err, out)
	}
	dir := t.TempDir()
	put(t, dir, "ssh", asSSH)
	put(t, dir, "hosts", "10.99.0.2\n10.99.0.3\n")
	if err := os.Chmod(filepath.Join(dir, "ssh"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-n", "-m", "sh", "-c", hosts, "sh", m.mpiexec, "-localhost", "10.99.0.1", "-launcher", "ssh", "-launcher-exec",
		filepath.Join(dir, "ssh"), "-f", filepath.Join(dir, "hosts"), "-ppn", "1", "-n", "2", m.program)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp")
	out, err := cmd.CombinedOutput()
	sent, isSame := strings.CutPrefix(string(out), m.want)
	if n, _ := strconv.Atoi(strings.TrimSpace(sent)); err != nil || !isSame || n < 100_000 {
		t.Errorf("error %v, printed\n%swant\n%sand many bytes", err, out, m.want)
	}
}

// testKill kills ranks when some checkpoints are there, and the job is run again.
func (m *machines) testKill(t *testing.T) {
	for range *kills {
		dir := t.TempDir()
		ranks, saves, who := 2<<m.random.IntN(2), 1+m.random.IntN(15), m.random.IntN(4)
		r := m.start(t, true, ranks, dir)
		afterSaves(t, dir, saves, func() {
			if pids := r.processes(m.program); len(pids) > 0 {
				syscall.Kill(pids[who%len(pids)], syscall.SIGKILL)
			}
		})
		code := r.wait(t)
		if got := r.stdout.String(); code != 0 || !strings.HasSuffix(got, m.want) || !strings.Contains(r.stderr.String(), "again.sh: exit code ") {
			t.Errorf("%d ranks, one killed after %d saves: exit code %d, printed\n%s%swant\n%s", ranks, saves, code, got, &r.stderr, m.want)
		}
		m.mustBeWhole(t, dir)
	}
}

// testStop has again.sh told to end, which stops the job at its next step. Another job goes on from there.
func (m *machines) testStop(t *testing.T) {
	dir := t.TempDir()
	r := m.start(t, true, 2, dir, "AGAIN_TRIES=1")
	afterSaves(t, dir, 4, func() { r.cmd.Process.Signal(syscall.SIGTERM) })
	if code := r.wait(t); code != 0 || r.stdout.Len() > 0 {
		t.Errorf("exit code %d, printed\n%s%s", code, &r.stdout, &r.stderr)
	}
	r = m.start(t, false, 4, dir)
	if code := r.wait(t); code != 0 || r.stdout.String() != m.want {
		t.Errorf("when it goes on: exit code %d, printed\n%s%swant\n%s", code, &r.stdout, &r.stderr, m.want)
	}
	m.mustBeWhole(t, dir)
}

// testDiffer starts ranks with different arguments. Each says so once.
func (m *machines) testDiffer(t *testing.T) {
	r := m.startCommand(t, false, 1, []string{m.program, ":", "-n", "1", m.program, "-steps", "7"})
	code := r.wait(t)
	const want = "wire: rank 1 runs another program than rank 0: other arguments\n"
	if told := strings.Count(r.stderr.String(), "mpi: rank "); code != 1 || told == 0 || strings.Count(r.stderr.String(), want) != told {
		t.Errorf("exit code %d, printed\n%s%swant from each rank\n%s", code, &r.stdout, &r.stderr, want)
	}
}

// testStuck stops a rank for good. The others notice, and the job ends.
func (m *machines) testStuck(t *testing.T) {
	dir := t.TempDir()
	r := m.start(t, false, 2, dir, "ASYNCGEN_RANK_TIMEOUT=5s")
	afterSaves(t, dir, 2, func() {
		if pids := r.processes(m.program); len(pids) > 0 {
			syscall.Kill(pids[len(pids)-1], syscall.SIGSTOP)
		}
	})
	if code := r.wait(t); code == 0 || strings.Count(r.stderr.String(), "for 5s: device lost") != 1 {
		t.Errorf("exit code %d, printed\n%s%s", code, &r.stdout, &r.stderr)
	}
}
