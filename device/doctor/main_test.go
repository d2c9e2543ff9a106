package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

func diagnosed(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	report(&out, device.Diagnose())
	return out.String()
}

// Whatever library there is, or none, the report has a line for each backend and says why OpenCL is
// not used.
func TestReport(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	decoy := filepath.Join(t.TempDir(), "decoy.so")
	if err := os.WriteFile(decoy, []byte("what a library is not"), 0o644); err != nil {
		t.Fatal(err)
	}
	libraries := map[string]string{missing: missing, decoy: decoy}
	if runtime.GOOS == "linux" {
		libraries["libm.so.6"] = "libm.so.6 is no library of OpenCL 1.2"
		libraries["libnosuchthing.so.7"] = "open libnosuchthing.so.7"
	}
	t.Setenv("ASYNCGEN_OPENCL", "")
	for library, want := range libraries {
		t.Setenv("ASYNCGEN_LIBOPENCL", library)
		got := diagnosed(t)
		for _, want := range []string{want, "\ncpu: used\n", "  note: products of matrices go ", "\nopencl: not used\n", "\nsim: used when named", "  note: library looked for: " + library, "never on a GPU of another maker"} {
			if !strings.Contains(got, want) {
				t.Errorf("ASYNCGEN_LIBOPENCL=%s: the report lacks %q:\n%s", library, want, got)
			}
		}
	}
	t.Setenv("ASYNCGEN_OPENCL", "off")
	if got := diagnosed(t); !strings.Contains(got, "  why: turned off by ASYNCGEN_OPENCL=off\n") {
		t.Errorf("turned off:\n%s", got)
	}
}

func TestLinesStandBelowEachOther(t *testing.T) {
	var out strings.Builder
	report(&out, []device.Diagnosis{{Driver: "some", Kind: device.KindGPU, Err: errors.Join(fmt.Errorf("a"), fmt.Errorf("b")), Notes: []string{"c"}}})
	if want := "\nsome: not used\n  why: a\n       b\n  note: c\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A failure to open the default device is not remembered, so this test does not depend on earlier
// ones.
func TestReportDefault(t *testing.T) {
	t.Setenv("ASYNCGEN_DEVICE", "gpu")
	var out strings.Builder
	reportDefault(&out)
	if got, want := out.String(), "\nby default: programs end with an error\n  why: ASYNCGEN_DEVICE: device: unknown device \"gpu\": this program has cpu, "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
