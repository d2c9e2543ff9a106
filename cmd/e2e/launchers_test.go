package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/sametemp"
)

// TestLaunchers runs the scripts of testdata/recipes that start jobs, with programs in the place of mpiexec, srun and
// scontrol.
func TestLaunchers(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("recipes are for bash: ", err)
	}
	t.Run("again", testAgain)
	t.Run("slurm", testSlurm)
	t.Run("kubernetes", testKubernetes)
}

// testAgain has a job fail some times.
func testAgain(t *testing.T) {
	for _, c := range []struct {
		failures, tries int
		quick           string
		code, runs      int
	}{
		{0, 3, "60", 0, 1},
		{2, 3, "60", 0, 3},
		{9, 3, "60", 7, 3},
		{9, 3, "0", 0, 10}, // no failure is quick
	} {
		runs := filepath.Join(t.TempDir(), "runs")
		job := fmt.Sprintf(`echo >>%q; (($(wc -l <%[1]q) > %d)) || exit 7`, runs, c.failures)
		cmd := exec.Command("testdata/recipes/again.sh", "bash", "-c", job)
		cmd.Env = append(os.Environ(), "AGAIN_PAUSE=0", fmt.Sprint("AGAIN_TRIES=", c.tries), "AGAIN_QUICK="+c.quick)
		out, _ := cmd.CombinedOutput()
		if code, n := cmd.ProcessState.ExitCode(), strings.Count(readText(t, runs), "\n"); code != c.code || n != c.runs {
			t.Errorf("%d failures, %d tries: exit code %d after %d runs, want %d after %d:\n%s", c.failures, c.tries, code, n, c.code, c.runs, out)
		}
	}
	// A signal goes on to the job, which is not run again.
	for _, signal := range []string{"TERM", "USR1"} {
		for _, code := range []int{0, 7} {
			job := fmt.Sprintf(`trap 'echo told; exit %d' %s; kill -s %[2]s $PPID; while :; do sleep 0.01; done`, code, signal)
			cmd := exec.Command("testdata/recipes/again.sh", "bash", "-c", job)
			if out, _ := cmd.CombinedOutput(); string(out) != "told\n" || cmd.ProcessState.ExitCode() != code {
				t.Errorf("%s: exit code %d, want %d, printed\n%s", signal, cmd.ProcessState.ExitCode(), code, out)
			}
		}
	}
}

// testSlurm has a step end well, fail, and stop because the batch script got a signal.
func testSlurm(t *testing.T) {
	for _, c := range []struct {
		name, step, restarts string
		code                 int
		requeued             bool
	}{
		{"ends", "exit 0", "", 0, false},
		{"fails", "exit 7", "", 7, true},
		{"fails too often", "exit 7", "20", 7, false},
		{"stops", "trap 'exit 0' USR1; kill -s USR1 $PPID; while :; do sleep 0.01; done", "", 0, true},
	} {
		dir := sametemp.Dir(t)
		put(t, dir, "srun", "#!/bin/bash\necho \"$@\" >"+filepath.Join(dir, "step")+"\n"+c.step+"\n")
		put(t, dir, "scontrol", "#!/bin/bash\necho \"$@\" >"+filepath.Join(dir, "control")+"\n")
		for _, name := range []string{"srun", "scontrol"} {
			if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("bash", "testdata/recipes/train.slurm")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_JOB_ID=42", "SLURM_RESTART_COUNT="+c.restarts)
		out, _ := cmd.CombinedOutput()
		control, _ := os.ReadFile(filepath.Join(dir, "control"))
		if code := cmd.ProcessState.ExitCode(); code != c.code || len(out) > 0 || (string(control) == "requeue 42\n") != c.requeued {
			t.Errorf("%s: exit code %d, want %d, scontrol %q, printed\n%s", c.name, code, c.code, control, out)
		}
		if step := readText(t, filepath.Join(dir, "step")); step != "--mpi=pmi2 --kill-on-bad-exit=1 ./train -dir /shared/run1\n" {
			t.Errorf("srun %s", step)
		}
		os.Remove(filepath.Join(dir, "control"))
	}
}

// testKubernetes holds what the job names against the image.
func testKubernetes(t *testing.T) {
	const job = "testdata/recipes/mpijob.yml"
	image := readText(t, "testdata/recipes/Containerfile")
	for _, command := range fields(t, job, "command") {
		if name := filepath.Base(strings.Trim(command, "[]")); name != "sshd" && !strings.Contains(image, "/usr/local/bin/"+name) {
			t.Errorf("%s runs %s, which is not in the image", job, command)
		}
	}
	args := strings.Join(fields(t, job, "args"), " ")
	for _, want := range []string{"mpiexec", "/home/mpiuser/sshd_config", " rank.sh, train, "} {
		if !strings.Contains(args, want) {
			t.Errorf("%s lacks %s in %s", job, want, args)
		}
	}
	for _, want := range []string{"/home/mpiuser/sshd_config", "Port 2222", "/usr/local/bin/train", "/usr/local/bin/rank.sh", "--uid 1000"} {
		if !strings.Contains(image, want) {
			t.Errorf("the image lacks %s", want)
		}
	}
	if ports := fields(t, job, "port"); !slices.Equal(ports, []string{"2222"}) {
		t.Errorf("%s has ports %q", job, ports)
	}
	if python, err := exec.LookPath("python3"); err == nil && exec.Command(python, "-c", "import yaml").Run() == nil {
		if out, err := exec.Command(python, "-c", "import yaml; yaml.safe_load(open('"+job+"'))").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", job, err, out)
		}
	}
}
