package scalars

import (
	"bytes"
	"math"
	"os"
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
