// Package opgraph shows graphs of operations: as a list, in the language of Graphviz, and as a drawing in SVG. It does
// not make them: the runtime does, of what a function enqueues, and asyncgen trace, of what a trace has.
package opgraph

import (
	"fmt"
	"io"
	"strings"
)

// A Graph has operations in the order in which the program enqueued them. What one depends on comes before it.
type Graph []Node

// A Node is an operation, or something outside of the graph that operations depend on.
type Node struct {
	Op        string // its name
	What      string // what it makes: "float32[64 10]"
	Where     string // the line that enqueued it; "": unknown
	Inputs    []int  // what it depends on, each once
	IsOutside bool   // it is drawn with a dashed line
}

// How what WriteDOT and WriteSVG write begins.
const (
	FirstDOT = "digraph ops {\n"
	FirstSVG = "<!-- asyncgen graph -->\n"
)

// String lists the nodes, one a line, with the numbers of those that they read.
func (g Graph) String() string {
	rows := make([][4]string, len(g))
	var widths [4]int
	for i := range g {
		n := &g[i]
		reads := ""
		for k, in := range n.Inputs {
			if k == 0 {
				reads = "reads"
			}
			reads += fmt.Sprint(" ", in+1)
		}
		rows[i] = [4]string{n.Op, n.What, reads, n.Where}
		for k, cell := range rows[i] {
			widths[k] = max(widths[k], len(cell))
		}
	}
	var b strings.Builder
	number := len(fmt.Sprint(len(rows)))
	for i, r := range rows {
		line := fmt.Sprintf("%*d  %-*s  %-*s  %-*s  %s", number, i+1, widths[0], r[0], widths[1], r[1], widths[2], r[2], r[3])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// WriteDOT writes the graph in the language of Graphviz.
func (g Graph) WriteDOT(w io.Writer) error {
	var b strings.Builder
	b.WriteString(FirstDOT + "\tnode [shape=box, style=rounded, fontname=\"sans-serif\"];\n")
	for i := range g {
		n := &g[i]
		style := ""
		if n.IsOutside {
			style = ", style=\"rounded,dashed\""
		}
		label := n.Op + "\n" + n.What
		if n.Where != "" {
			label += "\n" + n.Where
		}
		fmt.Fprintf(&b, "\tn%d [label=%s%s];\n", i+1, quoted(label), style)
	}
	for i := range g {
		for _, in := range g[i].Inputs {
			fmt.Fprintf(&b, "\tn%d -> n%d;\n", in+1, i+1)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted is a text as a string of that language, where a backslash before anything but a quote belongs to the label.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// WriteSVG writes a drawing of the graph. Nodes are below what they depend on.
func (g Graph) WriteSVG(w io.Writer) error {
	_, err := io.WriteString(w, layOut(g).svg())
	return err
}
