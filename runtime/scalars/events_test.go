package scalars

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Events have the bytes that TensorBoard's own writer gives them: testdata/events.py makes the file.
func TestEvents(t *testing.T) {
	want, err := os.ReadFile("testdata/events.tfevents")
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds float64) time.Time { return time.UnixMicro(1_700_000_000_000_000 + int64(seconds*1e6)) }
	var got []byte
	for _, e := range [][]byte{
		versionEvent(at(0)),
		startEvent(at(0), 7),
		scalarEvent(at(0.5), 0, "loss", 0.25),
		scalarEvent(at(1.25), 1, "loss", -1.5e-3),
		scalarEvent(at(2), 300, "a/ü", float32(math.NaN())),
		scalarEvent(at(3), 1<<40, strings.Repeat("x", 200), float32(math.Inf(-1))),
		scalarEvent(at(4), -1, "zero", 0),
	} {
		got = append(got, record(e)...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the events are\n%x, want\n%x", got, want)
	}
}

// A run that goes on begins its file with the step at which it does.
func TestResume(t *testing.T) {
	for _, resume := range []int{0, 300} {
		dir := t.TempDir()
		w, err := Open(Options{TensorBoard: dir, Resume: resume})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 1 {
			t.Fatalf("%v, %v", names, err)
		}
		got, err := os.ReadFile(filepath.Join(dir, names[0].Name()))
		if err != nil {
			t.Fatal(err)
		}
		at := len(record(versionEvent(time.Now())))
		start := startEvent(time.Now(), resume)[9:] // behind the time
		if has := bytes.Contains(got[at:], start); has != (resume > 0) || !has && len(got) > at {
			t.Errorf("to go on at %d, the file has %x", resume, got)
		}
	}
}

// The checksum of a known text, before and after masking: that of RFC 3720, B.4, for 32 zeros.
func TestMasked(t *testing.T) {
	crc := uint64(0x8a9136aa)
	rotated := (crc>>15 | crc<<17) % (1 << 32)
	if got, want := masked(make([]byte, 32)), uint32((rotated+0xa282ead8)%(1<<32)); got != want {
		t.Errorf("the masked checksum is %x, want %x", got, want)
	}
}

// A file that can't be written is an error of Close, and the others have all numbers.
func TestLostFile(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(Options{CSV: dir + "/s.csv", JSONLines: dir + "/s.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	w.sinks[0].(*csvFile).f.Close()
	for i := range 1000 {
		w.Add(i, "a", i)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), os.ErrClosed.Error()) || !strings.HasPrefix(err.Error(), "scalars: ") {
		t.Errorf("Close returns %v", err)
	}
	list, err := Read(dir + "/s.jsonl")
	if err != nil || len(list) != 1 || len(list[0].Steps) != 1000 {
		t.Errorf("the other file has %v, %v", list, err)
	}
}
