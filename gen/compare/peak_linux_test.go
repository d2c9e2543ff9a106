package compare

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// The memory of whoever starts a program counted as the program's own.
func TestPeakIsNotThatOfTheParent(t *testing.T) {
	const ballast = 256 << 20
	data := make([]byte, ballast)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	r := fakePrograms(t)
	cmd := exec.Command(r.original, "stay")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Error(err)
	}
	stop := watchPeak(cmd.Process.Pid)
	peak := stop(nil)
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if peak < 1<<20 || peak >= ballast/2 {
		t.Errorf("peak of a small program, started by one with %d bytes: %d bytes", len(data), peak)
	}
	if own := watchPeak(os.Getpid())(nil); own < ballast {
		t.Errorf("peak of this process: %d bytes, with %d in use", own, len(data))
	}
}
