package asyncrt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// TestWriteMemoryProfile has go tool pprof read which lines hold memory.
func TestWriteMemoryProfile(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	var kept []*tensor.Tensor
	for range 3 {
		kept = append(kept, tensor.Ones(1<<18)) // 1 MiB each
	}
	kept = append(kept, kept[0].AddScalar(1).To(sim), tensor.On(sim).Ones(1<<19))
	for _, x := range kept {
		if err := x.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "memory")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := asyncrt.WriteMemoryProfile(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	pprof := func(flags ...string) string {
		t.Helper()
		out, err := exec.Command("go", append(append([]string{"tool", "pprof", "-focus=TestWriteMemoryProfile", "-nodefraction=0"}, flags...), name)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, c := range []struct {
		flags []string
		want  []string
	}{
		{[]string{"-top"}, []string{"^Type: inuse_space", `\n +3MB .* profile_test\.go:23( \(inline\))?\n`, `\n +0 .*\.TestWriteMemoryProfile\n`}},
		{[]string{"-top", "-sample_index=inuse_objects", "-tagignore=device=^sim:0$"}, []string{"^Type: inuse_objects", `\n +3 .* profile_test\.go:23`}},
		{[]string{"-list=TestWriteMemoryProfile", "-tagfocus=device=^sim:0$"}, []string{`\n +\. +3MB +25:.*\.To\(sim\)`}},
	} {
		got := pprof(c.flags...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("go tool pprof %q prints\n%s\nwithout %q", c.flags, got, want)
			}
		}
	}
	if err := asyncrt.WriteMemoryProfile(broken{}); err == nil {
		t.Error("the error of the writer is lost")
	}
	for _, x := range kept {
		tensor.Dead(x)
	}
}
