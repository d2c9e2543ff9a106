package asyncrt_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// holders returns five results. Line 33 makes three on the CPU, of 1 MiB each. Line 35 makes two on sim:0, of 1 and
// 2 MiB, and 1 MiB more on the CPU that the first is copied from.
func holders(t *testing.T) []*tensor.Tensor {
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
	t.Cleanup(func() { tensor.Dead(kept...) })
	return kept
}

// TestWriteMemoryProfile decodes a profile, which has lines of other tests as well.
func TestWriteMemoryProfile(t *testing.T) {
	kept := holders(t)
	var out bytes.Buffer
	if err := asyncrt.WriteMemoryProfile(&out); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(kept)
	z, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	p := fields(t, data)
	var text []string
	for _, s := range p[6] {
		text = append(text, string(s.bytes))
	}
	named := map[uint64]string{} // functions
	for _, f := range p[5] {
		function := fields(t, f.bytes)
		named[function[1][0].n] = text[function[2][0].n]
	}
	called := map[uint64]string{} // lines of locations, the inner one first
	for _, l := range p[4] {
		location := fields(t, l.bytes)
		for _, line := range location[4] {
			called[location[1][0].n] += named[fields(t, line.bytes)[1][0].n] + " "
		}
	}
	var got []string
	for _, s := range p[2] {
		sample := fields(t, s.bytes)
		label := fields(t, sample[3][0].bytes)
		if c := called[sample[1][0].n]; strings.HasSuffix(c, ".holders ") {
			on := text[label[2][0].n]
			if on == "gated" { // a test before this one has wrapped the CPU, with the same memory
				on = "cpu"
			}
			got = append(got, fmt.Sprint(c, sample[2][0].n, " ", sample[2][1].n, " ", text[label[1][0].n], " ", on))
		}
	}
	slices.Sort(got)
	const in = "github.com/asyncgen/asyncgen/runtime_test.holders"
	want := []string{
		"profile_test.go:33 " + in + " 3 3145728 device cpu", // three of 1 MiB
		"profile_test.go:35 " + in + " 1 1048576 device cpu",
		"profile_test.go:35 " + in + " 2 3145728 device sim:0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := asyncrt.WriteMemoryProfile(broken{}); err == nil {
		t.Error("the error of the writer is lost")
	}
}

// A field is one of a message of protocol buffers: a number, or bytes.
type field struct {
	n     uint64
	bytes []byte
}

// fields returns the fields of a message by their numbers.
func fields(t *testing.T, b []byte) map[uint64][]field {
	t.Helper()
	all := map[uint64][]field{}
	next := func() uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("a message ends in a number: %x", b)
		}
		b = b[n:]
		return x
	}
	for len(b) > 0 {
		key, f := next(), field{n: next()}
		switch {
		case key&7 == 2 && f.n <= uint64(len(b)):
			f.bytes, b = b[:f.n], b[f.n:]
		case key&7 != 0:
			t.Fatalf("field %d has type %d, or is too long", key>>3, key&7)
		}
		all[key>>3] = append(all[key>>3], f)
	}
	return all
}

// TestMemoryProfileByPprof has go tool pprof read which lines hold memory. It takes turns, as the go command compiles
// pprof first.
func TestMemoryProfileByPprof(t *testing.T) {
	turns.Take(t)
	kept := holders(t)
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
		out, err := exec.Command("go", append(append([]string{"tool", "pprof", "-focus=holders", "-nodefraction=0"}, flags...), name)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, c := range []struct {
		flags []string
		want  []string
	}{
		{[]string{"-top"}, []string{"^Type: inuse_space", `\n +3MB .* profile_test\.go:33( \(inline\))?\n`, `\n +0 .*\.holders\n`}},
		{[]string{"-top", "-sample_index=inuse_objects", "-tagignore=device=^sim:0$"}, []string{"^Type: inuse_objects", `\n +3 .* profile_test\.go:33`}},
		{[]string{"-list=holders", "-tagfocus=device=^sim:0$"}, []string{`\n +\. +3MB +35:.*\.To\(sim\)`}},
	} {
		got := pprof(c.flags...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("go tool pprof %q prints\n%s\nwithout %q", c.flags, got, want)
			}
		}
	}
	runtime.KeepAlive(kept)
}
