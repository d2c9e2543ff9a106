package opgraph

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// example is x*y + 2, with names that want to be something else.
var example = Graph{
	{Op: "tensor", What: "float32[1 2]", IsOutside: true},
	{Op: "Fill", What: `a "quoted" \n <b>&`, Where: "main.go:3"},
	{Op: "Mul", What: "float32[1 2]", Where: "main.go:4", Inputs: []int{0, 1}},
	{Op: "AddScalar", What: "float32[1 2]", Where: "main.go:4", Inputs: []int{2}},
}

func TestText(t *testing.T) {
	const list = `1  tensor     float32[1 2]
2  Fill       a "quoted" \n <b>&             main.go:3
3  Mul        float32[1 2]        reads 1 2  main.go:4
4  AddScalar  float32[1 2]        reads 3    main.go:4
`
	if got := example.String(); got != list {
		t.Errorf("the list is\n%s\nwant\n%s", got, list)
	}
	const dot = `digraph ops {
	node [shape=box, style=rounded, fontname="sans-serif"];
	n1 [label="tensor\nfloat32[1 2]", style="rounded,dashed"];
	n2 [label="Fill\na \"quoted\" \\n <b>&\nmain.go:3"];
	n3 [label="Mul\nfloat32[1 2]\nmain.go:4"];
	n4 [label="AddScalar\nfloat32[1 2]\nmain.go:4"];
	n1 -> n3;
	n2 -> n3;
	n3 -> n4;
}
`
	var b strings.Builder
	if err := example.WriteDOT(&b); err != nil || b.String() != dot {
		t.Errorf("for Graphviz it is\n%s\nwant\n%s\n%v", &b, dot, err)
	}
	b.Reset()
	if err := example.WriteSVG(&b); err != nil || !strings.HasPrefix(b.String(), FirstSVG) || strings.Count(b.String(), "stroke-dasharray") != 1 {
		t.Errorf("%v\n%s", err, &b)
	}
}

// TestDrawing draws random graphs. Each node has a box, each edge has a line, and boxes do not overlap.
func TestDrawing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	graphs := []Graph{{}, example}
	for range 30 {
		g := make(Graph, 1+rnd.IntN(60))
		for i := range g {
			g[i] = Node{Op: "Op", What: strings.Repeat("x", rnd.IntN(30)), IsOutside: rnd.IntN(5) == 0}
			for range min(i, rnd.IntN(4)) {
				if in := rnd.IntN(i); !slices.Contains(g[i].Inputs, in) {
					g[i].Inputs = append(g[i].Inputs, in)
				}
			}
		}
		graphs = append(graphs, g)
	}
	for _, g := range graphs {
		var svg bytes.Buffer
		if err := g.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		boxes, lines := drawing(t, svg.Bytes())
		want := 0
		for i := range g {
			want += len(g[i].Inputs)
		}
		if len(boxes) != len(g) || lines != want {
			t.Errorf("%d boxes and %d lines, want %d and %d for\n%s", len(boxes), lines, len(g), want, g)
		}
		for i, p := range boxes {
			for _, q := range boxes[:i] {
				if p[0] < q[0]+q[2] && q[0] < p[0]+p[2] && p[1] < q[1]+q[3] && q[1] < p[1]+p[3] {
					t.Errorf("boxes overlap: %v, %v in\n%s", p, q, g)
				}
			}
		}
	}
}

// drawing checks that svg is well-formed and that everything is within its frame. It returns the boxes and the
// number of edges.
func drawing(t *testing.T, svg []byte) (boxes [][4]float64, edges int) {
	t.Helper()
	var width, height float64
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		tok, err := d.Token()
		if err == io.EOF {
			return boxes, edges
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		attr := map[string]string{}
		for _, a := range e.Attr {
			attr[a.Name.Local] = a.Value
		}
		number := func(name string) (v float64) {
			fmt.Sscan(attr[name], &v)
			return v
		}
		switch {
		case e.Name.Local == "svg":
			width, height = number("width"), number("height")
		case e.Name.Local == "rect" && attr["x"] != "":
			box := [4]float64{number("x"), number("y"), number("width"), number("height")}
			if box[0] < 0 || box[1] < 0 || box[0]+box[2] > width || box[1]+box[3] > height {
				t.Errorf("box %v is outside of %v×%v", box, width, height)
			}
			boxes = append(boxes, box)
		case e.Name.Local == "path" && attr["marker-end"] != "":
			edges++
		}
	}
}
