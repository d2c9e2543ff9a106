package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A peer runs while it is asked, and is stopped before and after.
func TestPeersAreStopped(t *testing.T) {
	p, err := start("sh", 1, []string{"sh", "-c", `echo {}; read question; sed -n 's/^State:.\(.\).*/{"Missing": "\1"}/p' /proc/$$/status`})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	isStopped := func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(status), "\nState:\tT ")
	}
	for end := time.Now().Add(10 * time.Second); !isStopped(); runtime.Gosched() { // a signal takes its time
		if time.Now().After(end) {
			t.Fatal("it runs before it is asked")
		}
	}
	if a, err := p.ask(question{}); err != nil || a.Missing == "T" {
		t.Errorf("it answers from state %q, error %v", a.Missing, err)
	}
}
