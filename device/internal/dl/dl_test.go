package dl_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device/internal/dl"
)

// libc returns a library that every system has, and a function in it.
func libc(t *testing.T) (name, function string) {
	t.Helper()
	switch runtime.GOOS {
	case "linux":
		return "libc.so.6", "abs"
	case "darwin":
		return "/usr/lib/libSystem.B.dylib", "abs"
	case "windows":
		return "msvcrt.dll", "abs"
	}
	t.Skipf("no library is known on %s", runtime.GOOS)
	return "", ""
}

func TestOpenTakesTheFirstThatThereIs(t *testing.T) {
	name, function := libc(t)
	lib, err := dl.Open("libnosuchthing.so.7", name, "libneverlookedat.so")
	if err != nil {
		t.Skipf("libc can't be opened here: %v", err)
	}
	if lib.Name != name {
		t.Errorf("opened %s, want %s", lib.Name, name)
	}
	if address, err := lib.Symbol(function); err != nil || address == 0 {
		t.Errorf("%s: address %#x, error %v", function, address, err)
	}
	_, err = lib.Symbol("clGetPlatformIDs")
	if err == nil || !strings.Contains(err.Error(), name) || runtime.GOOS == "linux" && !strings.Contains(err.Error(), "clGetPlatformIDs") {
		t.Errorf("a symbol that is missing: error %v names not both", err)
	}
}

func TestOpenNamesAllThatWasTried(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	_, err := dl.Open("libnosuchthing.so.7", missing)
	if err == nil {
		t.Fatal("it was opened")
	}
	for _, want := range []string{"open libnosuchthing.so.7: ", "open " + missing + ": "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if _, err := dl.Open(); err == nil || err.Error() != "no library is known for this system" {
		t.Errorf("without a name: error %v", err)
	}
}

func TestOpenFailsOnWhatIsNoLibrary(t *testing.T) {
	decoy := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	if err := os.WriteFile(decoy, []byte("not a library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dl.Open(decoy); err == nil || !strings.Contains(err.Error(), decoy) {
		t.Errorf("error %v does not name %s", err, decoy)
	}
}

func TestOpenRefusesRelativePaths(t *testing.T) {
	for _, name := range []string{"", "./libc.so.6", "lib/libc.so.6", `lib\libc.dll`} {
		if _, err := dl.Open(name); err == nil || !strings.Contains(err.Error(), "neither a name that the system knows nor an absolute path") {
			t.Errorf("%q: error %v", name, err)
		}
	}
}
