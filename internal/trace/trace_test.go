package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

const us = time.Microsecond

func someEvent() *Event {
	e := &Event{Kind: Op, Row: 7, Begin: 12500, End: 15500, Name: "MatMul", PC: 42, ID: ID{1, 45}, Enqueued: 9250, By: 1, Bytes: 2560, Type: "float32",
		Reads: [MaxReads]ID{{1, 43}, {1, 44}}}
	e.SetShape([]int{64, 10})
	return e
}

func places(pc uintptr) *Place {
	if pc == 42 {
		return &Place{File: "/src/tr\"ain</script>\n.go", Func: "main.train[...]", Line: 31}
	}
	return nil
}

// TestText compares what is written with what the package's comment shows.
func TestText(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, places)
	w.Name(7, "worker of cpu")
	w.Name(7, "another name")
	w.Name(8, "a \"name\"\x01")
	w.Add(someEvent(), 2560)
	w.Add(&Event{Kind: Wait, Row: 1, Begin: 10 * us, End: 15500, Name: "Item", ID: ID{1, 45}, Idle: 2500}, 0)
	w.Add(&Event{Kind: Stall, Row: 1, Begin: 16 * us, End: 60 * us, Name: "Add", PC: 41}, 17)
	skipped := &Event{Kind: Op, Begin: 70 * us, End: 70 * us, Name: "Copy", ID: ID{2, 1}, Gate: ID{1, 50}, Skipped: true, Type: "int64"}
	skipped.SetShape(make([]int, 7))
	w.Add(skipped, 17)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := `
{"ph":"M","name":"thread_name","pid":1,"tid":7,"args":{"name":"worker of cpu"}},
{"ph":"M","name":"thread_name","pid":1,"tid":8,"args":{"name":"a \"name\"\u0001"}},
{"ph":"X","cat":"op","name":"MatMul","ts":3.250,"dur":3,"pid":1,"tid":7,"args":{"id":"1.45","enqueued":0,"by":1,"reads":["1.43","1.44"],"result":"float32[64 10]","bytes":2560,"at":"/src/tr\"ain\u003c/script\u003e\n.go:31","func":"main.train[...]"}},
{"ph":"C","name":"bytes in flight","ts":6.250,"pid":1,"args":{"bytes":2560}},
{"ph":"X","cat":"wait","name":"Item","ts":0.750,"dur":5.500,"pid":1,"tid":1,"args":{"idle":2.500,"for":"1.45"}},
{"ph":"X","cat":"stall","name":"Add","ts":6.750,"dur":44,"pid":1,"tid":1,"args":{"idle":0}},
{"ph":"C","name":"bytes in flight","ts":50.750,"pid":1,"args":{"bytes":17}},
{"ph":"X","cat":"op","name":"Copy","ts":60.750,"dur":0,"pid":1,"tid":0,"args":{"id":"2.1","gate":"1.50","result":"int64[0 0 0 0 0 0 ...]","bytes":0,"skipped":true}}
]
`
	text := b.String()
	if !json.Valid(b.Bytes()) {
		t.Error("no JSON")
	}
	lines := strings.SplitAfterN(text, "\n", 4)
	if got := "\n" + lines[len(lines)-1]; got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
	// What comes after the end is lost.
	w.Add(someEvent(), 0)
	if err := errors.Join(w.Flush(), w.Close()); err != nil || b.String() != text {
		t.Errorf("after the end: %v, %s", err, b.String()[len(text):])
	}
}

// TestUnfinished reads what is there before the end, as viewers do.
func TestUnfinished(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, places)
	for i := range 3 {
		w.Add(someEvent(), 0)
		w.Pass()
		w.Flush()
		if n := strings.Count(b.String(), `"MatMul"`); n != i+1 || !json.Valid([]byte(b.String()+"]")) {
			t.Errorf("%d events after %d, in %s", n, i+1, b.String())
		}
	}
	w.Close()
}

// TestManyEvents: none is lost while the writer is quick enough, and those that are lost are counted.
func TestManyEvents(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, places)
	w.out.Lock() // nothing is written meanwhile
	w.most = 100
	for range 105 {
		w.Add(&Event{Kind: Stall}, 0)
	}
	w.out.Unlock()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte(`"stall"`)); n != 99 || !bytes.HasSuffix(b.Bytes(), []byte(`"lost","pid":1,"args":{"events":6}}`+"\n]\n")) {
		t.Errorf("%d events, and then %q", n, b.Bytes()[b.Len()-100:])
	}
}

// failing fails after some bytes.
type failing int

func (f *failing) Write(p []byte) (int, error) {
	if *f -= failing(len(p)); *f < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestErrors(t *testing.T) {
	f := failing(1000)
	w := NewWriter(&f, places)
	for range 10 {
		w.Add(someEvent(), 0)
		w.Flush()
	}
	if err := w.Close(); err == nil || err.Error() != "disk full" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkWriter(b *testing.B) {
	w := NewWriter(io.Discard, places)
	e := someEvent()
	for i := range b.N {
		e.Begin += us
		e.End += us
		w.Add(e, 0)
		if i%1000 == 0 {
			w.Flush()
		}
	}
	w.Close()
}
