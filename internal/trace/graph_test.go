package trace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]string{
		"4.2ms-4.4ms":    "{4.2ms 4.4ms  0 0}",
		"0s-1us":         "{0s 1µs  0 0}",
		"train.go:30":    "{0s 0s train.go 30 30}",
		"a/train.go:2-9": "{0s 0s a/train.go 2 9}",
		"C:/a-b/x.go:7":  "{0s 0s C:/a-b/x.go 7 7}",
	} {
		if got, err := ParseSpan(text); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q is %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "1ms", "2ms-1ms", "1ms-1ms", "-1ms-2ms", "1-2", "a.go", "a.go:", "a.go:0", "a.go:x", "a.go:3-2", ":3", "a.go:1-", "a.go:-1"} {
		if got, err := ParseSpan(text); err == nil || !strings.Contains(err.Error(), "want two times") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// opOf is the event of an operation.
func opOf(id, name string, begin, end, line int, reads string) string {
	return fmt.Sprintf(`,`+"\n"+`{"ph":"X","cat":"op","name":%q,"ts":%d,"dur":%d,"tid":2,"args":{"id":%q,"enqueued":1,"reads":[%s],"result":"float32[1 2]","at":"/src/main.go:%d"}}`,
		name, begin, end-begin, id, reads, line)
}

// TestGraph makes graphs of parts of x*y + 2. All was enqueued at one time, and what a device copied has two names.
func TestGraph(t *testing.T) {
	tr := read(t, start+opOf("1.1", "Fill", 11, 12, 30, "")+opOf("2.9", "Fill", 12, 13, 31, `"9.9"`)+opOf("1.2", "Mul", 13, 15, 32, `"2.9","1.1","2.9"`)+
		opOf("1.0", "AddScalar", 15, 16, 33, `"1.2","1.0"`)+waitAt(16, 17, 1)+"\n]\n")
	for spans, want := range map[string]string{
		"": `1  tensor
2  Fill       float32[1 2]  reads 1    main.go:31
3  Fill       float32[1 2]             main.go:30
4  Mul        float32[1 2]  reads 2 3  main.go:32
5  AddScalar  float32[1 2]  reads 4    main.go:33
`,
		"main.go:32-33": `1  Fill       float32[1 2]             main.go:31
2  Fill       float32[1 2]             main.go:30
3  Mul        float32[1 2]  reads 1 2  main.go:32
4  AddScalar  float32[1 2]  reads 3    main.go:33
`,
		"src/main.go:30-33 10us-12us": "1  Fill    float32[1 2]           main.go:30\n2  tensor\n3  Fill    float32[1 2]  reads 2  main.go:31\n",
		"/src/main.go:32":             "1  Fill  float32[1 2]             main.go:31\n2  Fill  float32[1 2]             main.go:30\n3  Mul   float32[1 2]  reads 1 2  main.go:32\n",
		"n.go:32":                     "no operation of the trace is in the span",
		"20us-30us":                   "no operation of the trace is in the span",
	} {
		var list []Span
		for _, text := range strings.Fields(spans) {
			span, err := ParseSpan(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, span)
		}
		g, err := tr.Graph(list...)
		got := g.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q has\n%s\nwant\n%s", spans, got, want)
		}
		for i, n := range g {
			if isOutside := strings.Contains(spans, ":32") && strings.Contains(want, " Mul ") && n.Op == "Fill" || n.Op == "tensor"; n.IsOutside != isOutside {
				t.Errorf("%q: node %d, %s, is outside: %v", spans, i, n.Op, n.IsOutside)
			}
		}
	}
}

// TestGraphOfAnything makes graphs of traces in which operations read random ones. In the graph, each operation comes
// after those that it reads. No operation waits for itself: reads that lead back to it are left out.
func TestGraphOfAnything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		tr := &Trace{}
		n := 1 + rnd.IntN(40)
		for range n {
			s := Slice{Kind: Op, Name: "f", Begin: time.Duration(rnd.IntN(9)), ID: ID{1, uint64(rnd.IntN(n))}}
			for k := range rnd.IntN(MaxReads + 1) {
				s.Reads[k] = ID{uint16(1 + rnd.IntN(2)), uint64(rnd.IntN(n))}
			}
			tr.Slices = append(tr.Slices, s)
		}
		g, err := tr.Graph()
		if err != nil || len(g) < n {
			t.Fatalf("%d nodes of %d operations: %v", len(g), n, err)
		}
		for i := range g {
			for _, in := range g[i].Inputs {
				if in >= i {
					t.Errorf("node %d reads %d", i, in)
				}
			}
		}
		var svg strings.Builder
		if err := g.WriteSVG(&svg); err != nil || strings.Count(svg.String(), "<text") < n {
			t.Errorf("%v\n%s", err, &svg)
		}
	}
	tr := &Trace{Slices: make([]Slice, MaxNodes+1)}
	for i := range tr.Slices {
		tr.Slices[i] = Slice{Kind: Op, ID: ID{1, uint64(i)}}
	}
	if _, err := tr.Graph(); err == nil || !strings.Contains(err.Error(), "1001 operations in the span") {
		t.Error(err)
	}
}
