package asyncrt_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device/devicetest"
)

func TestMain(m *testing.M) {
	devicetest.QuickSim()
	os.Exit(m.Run())
}

// A program with a wrong setting ends with one line on standard error that names the variable.
func TestSettings(t *testing.T) {
	const sim, cl, long = "ASYNCGEN_DEVICE=sim:0 ", "ASYNCGEN_DEVICE=opencl:0 ", "99999999999999999999"
	for _, env := range []string{
		"ASYNCGEN_DEVICE=gpu", "ASYNCGEN_DEVICE=cpu:1", "ASYNCGEN_DEVICE=sim:x", "ASYNCGEN_DEVICE=sim:-1", "ASYNCGEN_DEVICE=sim:9", "ASYNCGEN_DEVICE=opencl:0", "ASYNCGEN_DEVICE=a\nb",
		"ASYNCGEN_ENGINE=sync", "ASYNCGEN_ENGINE=shuffle", "ASYNCGEN_ENGINE=shuffle:x", "ASYNCGEN_ENGINE=shuffle:" + long, "ASYNCGEN_ENGINE=a\nb",
		"ASYNCGEN_LIMIT=2GB", "ASYNCGEN_LIMIT=-1", "ASYNCGEN_LIMIT=" + long, "ASYNCGEN_LIMIT=\n",
		"ASYNCGEN_MEMORY=0", "ASYNCGEN_MEMORY=-1", "ASYNCGEN_MEMORY=1.5", "ASYNCGEN_MEMORY=" + long, "ASYNCGEN_MEMORY=1\n2",
		"ASYNCGEN_ISA=sse", "ASYNCGEN_ISA=\n",
		sim + "ASYNCGEN_SIM=n=-1", sim + "ASYNCGEN_SIM=launch", sim + "ASYNCGEN_SIM=launch=-5us", sim + "ASYNCGEN_SIM=x=1", sim + "ASYNCGEN_SIM=bandwidth=0", sim + "ASYNCGEN_SIM=clock=\nx",
		"ASYNCGEN_FAULT=call=Wait,kind=x", "ASYNCGEN_FAULT=x", "ASYNCGEN_FAULT=call=Wait,n=-1,\nx",
		cl + "ASYNCGEN_OPENCL=x", cl + "ASYNCGEN_OPENCL=a\nb", cl + "ASYNCGEN_OPENCL_CPU=yes", cl + "ASYNCGEN_OPENCL_CPU=1\n2",
		cl + "ASYNCGEN_OPENCL_QUEUES=0", cl + "ASYNCGEN_OPENCL_QUEUES=99", cl + "ASYNCGEN_OPENCL_QUEUES=1\nx", cl + "ASYNCGEN_OPENCL_QUEUES=" + long,
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^ExampleTry$", "-test.timeout=60s")
		cmd.Env = os.Environ()
		name := ""
		for _, device := range []string{sim, cl} {
			if rest, ok := strings.CutPrefix(env, device); ok {
				cmd.Env, env = append(cmd.Env, strings.TrimSpace(device), "ASYNCGEN_OPENCL="), rest
			}
		}
		name, _, _ = strings.Cut(env, "=")
		cmd.Env = append(cmd.Env, env)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		text := stderr.String()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "asyncgen: ") || !strings.Contains(text, name) {
			t.Errorf("%q: %v, want exit status 2 and one line about it, got\n%.600s", env, err, text)
		}
	}
}

// If a report can't be written, one line on standard error says so, and the program runs.
func TestReportSetting(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, dir + "/none/report", dir + "/a\nb/report", "/dev/null"} {
		cmd := exec.Command(os.Args[0], "-test.run=^ExampleTry$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), "ASYNCGEN_REPORT="+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		text := stderr.String()
		if err != nil || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "asyncgen: no report of waits: ") {
			t.Errorf("ASYNCGEN_REPORT=%q: %v, want exit status 0 and one line about it, got\n%.600s", path, err, text)
		}
	}
}
