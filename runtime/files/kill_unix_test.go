//go:build linux || darwin

package files_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/runtime/files"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var kills = flag.Int("kills", 5, "how often TestKilled kills a program")

// child is the variable that makes the test binary another program: its name and a folder.
const child = "ASYNCGEN_FILES_TEST"

func TestMain(m *testing.M) {
	name, dir, isChild := strings.Cut(os.Getenv(child), " ")
	switch {
	case !isChild:
		os.Exit(m.Run())
	case name == "train":
		trainForever(dir)
	case name == "full":
		fillDisk(dir)
	}
}

// command returns the command that runs the test binary as another program.
func command(t *testing.T, name, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), child+"="+name+" "+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// asNobody runs the present test as a user without rights.
func asNobody(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	for d := dir; d != filepath.Dir(d) && d != filepath.Clean(os.TempDir()); d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o777))
	}
	binary, err := os.ReadFile(self)
	must(t, err)
	self = filepath.Join(dir, "test")
	must(t, os.WriteFile(self, binary, 0o777))
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err) // root of a container, perhaps
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// killedSteps is more than a killed program makes.
const killedSteps = 1000

// trainForever goes on from the latest checkpoint and saves in each step. It prints a line for each.
func trainForever(dir string) {
	r := start(dir, "AdamW", 2)
	_, err := r.run.Resume()
	for err == nil && r.step < killedSteps {
		r.train(r.step + 1)
		err = r.run.SaveAsync(r.step)
		fmt.Println(r.step)
	}
	fmt.Println("ended: ", errors.Join(err, r.run.Wait()))
}

// A program that is killed while it saves, at any moment, leaves a checkpoint from which the run goes on with the bits
// of one that was never interrupted.
func TestKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for i := range *kills {
		cmd := command(t, "train", dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		// It is killed after some lines and some work of ours.
		lines := bufio.NewScanner(out)
		last := 0
		for range 1 + random.IntN(8) {
			if lines.Scan() {
				last, err = strconv.Atoi(lines.Text())
				must(t, err)
			}
		}
		spin := tensor.Randn(1+random.IntN(200), 200)
		spin.MatMul(spin.T()).Sum().Item()
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the program ended by itself")
		}

		r := start(dir, "AdamW", 2)
		step, err := r.run.Resume()
		if err != nil || step < last-1 {
			t.Fatalf("kill %d: Resume returns %d, %v, after step %d was begun", i, step, err, last)
		}
		got := r.contents(t)
		r.train(step + 3)
		later := r.contents(t)
		want := start(filepath.Join(dir, "none"), "AdamW", 0)
		want.train(step)
		if !bytes.Equal(got, want.contents(t)) {
			t.Fatalf("kill %d: step %d has other bits", i, step)
		}
		want.train(step + 3)
		if !bytes.Equal(later, want.contents(t)) {
			t.Fatalf("kill %d: three steps after %d the bits differ", i, step)
		}
		if step > killedSteps/2 {
			must(t, os.RemoveAll(dir))
		}
	}
	n := 0
	must(t, files.NewCheckpoints(dir, files.Parts{"n": &n}, files.CheckpointOptions{Keep: 2}).Save(killedSteps+1))
	mustBeClean(t, dir)
}

// fillDisk saves until a file may not get as long as it would be, and prints the error.
func fillDisk(dir string) {
	b := tensor.NewBuffer(tensor.Zeros(10))
	run := files.NewCheckpoints(dir, files.Parts{"b": b})
	if err := run.Save(1); err != nil {
		fmt.Println("too early: ", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 10_000, Max: 10_000}); err != nil {
		fmt.Println("skip: ", err)
		return
	}
	b.Set(tensor.Zeros(100, 100))
	large := map[string]*tensor.Tensor{"x": b.Value()}
	for _, err := range []error{
		run.Save(2),
		files.Write(filepath.Join(dir, "x.safetensors"), large, nil),
		files.WriteShards(filepath.Join(dir, "x.safetensors.index.json"), map[string]*tensor.Tensor{"a": tensor.Zeros(1), "x": b.Value()}, nil, 4),
		files.WriteNPY(filepath.Join(dir, "x.npy"), b.Value()),
		files.WriteNPZ(filepath.Join(dir, "x.npz"), large),
	} {
		fmt.Println(errors.Is(err, syscall.EFBIG), err)
	}
}

// A disk that is full is an error, and leaves what was there, and nothing else.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	out, err := command(t, "full", dir).Output()
	must(t, err)
	if strings.HasPrefix(string(out), "skip") {
		t.Skip(string(out))
	}
	if strings.Count(string(out), "true ") != 5 || strings.Count(string(out), "\n") != 5 {
		t.Errorf("the errors are\n%s", out)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
	b := tensor.NewBuffer(nil)
	if step, err := files.NewCheckpoints(dir, files.Parts{"b": b}).Resume(); step != 1 || err != nil || b.Value().Size() != 10 {
		t.Errorf("Resume: %d, %v", step, err)
	}
}

// A file that only its owner may read stays so.
func TestRights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	must(t, files.WriteNPY(path, tensor.Scalar(1)))
	for _, want := range []os.FileMode{0o600, 0o400} {
		must(t, os.Chmod(path, want))
		must(t, files.WriteNPY(path, tensor.Scalar(2)))
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("the rights are %v, %v, want %v", info.Mode(), err, want)
		}
	}
}

// A folder without the right to write leaves all as it was.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 { // who may write anywhere
		asNobody(t)
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	must(t, files.WriteNPY(path, tensor.Scalar(1)))
	must(t, os.Chmod(dir, 0o555))
	defer os.Chmod(dir, 0o777)
	if err := files.WriteNPY(path, tensor.Scalar(2)); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a write there returns %v", err)
	}
	x, err := files.ReadNPY(path)
	must(t, err)
	if x.Item() != 1 {
		t.Error("the file has changed")
	}
	must(t, os.Chmod(dir, 0o333)) // what is written could not be forced to the disk
	for what, err := range map[string]error{
		"WriteNPY":    files.WriteNPY(path, tensor.Scalar(2)),
		"WriteShards": files.WriteShards(filepath.Join(dir, "x.safetensors.index.json"), nil, nil, 1),
		"Save":        files.NewCheckpoints(filepath.Join(dir, "run"), nil).Save(1),
	} {
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s to a folder that can't be read returns %v", what, err)
		}
	}
	must(t, os.Chmod(dir, 0o777))
	x, err = files.ReadNPY(path)
	must(t, err)
	if list, err := os.ReadDir(dir); x.Item() != 1 || len(list) != 1 {
		t.Errorf("the folder has %v, %v, and the file %v", list, err, x)
	}
}
