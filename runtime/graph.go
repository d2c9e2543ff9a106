package asyncrt

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/internal/opgraph"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
)

// An OpGraph has the operations that a span of the program enqueued, and which results they read. That is what the
// engine knows when it decides what can run at the same time. Views do not appear: an operation that reads a view
// reads the tensor that it is a view of.
type OpGraph struct {
	nodes []node
}

// A node is an operation, or a tensor that existed before.
type node struct {
	op     string // empty for a tensor that existed before
	dtype  device.DType
	shape  device.Shape // nil if unknown
	device device.Device
	file   string // base name of the file that enqueued it
	line   int
	inputs []int // nodes that it depends on, each once
}

// Graph calls f and returns the operations that were enqueued meanwhile, those
// of other goroutines included. It does not wait for them.
//
//	fmt.Print(asyncrt.Graph(func() { z = x.Mul(y).AddScalar(2) }))
//
//asyncgen:api call 0 once
func Graph(f func()) *OpGraph {
	r := recorder{writer: map[*engine.Storage]int{}}
	stop := engine.Default().Record(r.add)
	defer stop()
	f()
	return &OpGraph{nodes: r.nodes}
}

// A recorder builds an OpGraph from the engine's events.
type recorder struct {
	nodes  []node
	writer map[*engine.Storage]int // the node that wrote it last, or that stands for it if it existed before
}

func (r *recorder) add(e engine.Event) {
	n := node{op: e.Op, dtype: e.DTypes[0], device: e.Device, file: filepath.Base(e.File), line: e.Line}
	if len(e.Shapes) > 0 { // events of copies between devices have no shapes
		n.shape = append(device.Shape{}, e.Shapes[0]...)
	}
	seen := map[int]bool{}
	for i, s := range e.Operands {
		if e.Writes>>i&1 != 0 {
			continue
		}
		from, ok := r.writer[s]
		if !ok {
			from = len(r.nodes)
			r.writer[s] = from
			source := node{device: s.Device()}
			if i < len(e.Shapes) && i < len(e.DTypes) {
				source.dtype, source.shape = e.DTypes[i], append(device.Shape{}, e.Shapes[i]...)
			}
			r.nodes = append(r.nodes, source)
		}
		if !seen[from] {
			seen[from] = true
			n.inputs = append(n.inputs, from)
		}
	}
	for i, s := range e.Operands {
		if e.Writes>>i&1 != 0 {
			r.writer[s] = len(r.nodes)
		}
	}
	r.nodes = append(r.nodes, n)
}

// where returns the line that enqueued n, and its device if that is not the default one.
func (n *node) where() string {
	var parts []string
	if n.op != "" && n.line > 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", n.file, n.line))
	}
	if n.device.Unscoped() != device.Default().Unscoped() {
		parts = append(parts, "on "+n.device.Name())
	}
	return strings.Join(parts, " ")
}

// graph is g as it is shown.
func (g *OpGraph) graph() opgraph.Graph {
	nodes := make(opgraph.Graph, len(g.nodes))
	for i := range g.nodes {
		n := &g.nodes[i]
		nodes[i] = opgraph.Node{Op: cmp.Or(n.op, "tensor"), What: n.dtype.String(), Where: n.where(), Inputs: n.inputs, IsOutside: n.op == ""}
		if n.shape != nil {
			nodes[i].What += n.shape.String()
		}
	}
	return nodes
}

// Len returns the number of operations.
//
//asyncgen:api meta
func (g *OpGraph) Len() int {
	n := 0
	for i := range g.nodes {
		if g.nodes[i].op != "" {
			n++
		}
	}
	return n
}

// String lists the operations in program order, one a line, with the numbers
// of those that they read:
//
//	1  tensor     float32[1 2]
//	2  AddScalar  float32[1 2]  reads 1    main.go:12
//
//asyncgen:api meta
func (g *OpGraph) String() string { return g.graph().String() }

// WriteDOT writes the graph in the language of Graphviz.
//
//asyncgen:api meta
func (g *OpGraph) WriteDOT(w io.Writer) error { return g.graph().WriteDOT(w) }

// WriteSVG writes a drawing of the graph. Operations are below what they depend on.
//
//asyncgen:api meta
func (g *OpGraph) WriteSVG(w io.Writer) error { return g.graph().WriteSVG(w) }
