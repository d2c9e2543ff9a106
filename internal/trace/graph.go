package trace

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/internal/opgraph"
)

// A Span is a part of a trace: what ran between two times, or what some lines enqueued.
type Span struct {
	From, To    time.Duration // since the trace began; both 0: at any time
	File        string        // the end of its path; "": any
	First, Last int           // lines of File
}

// ParseSpan reads a span: "4.2ms-4.4ms", "train.go:30" or "train.go:27-30".
func ParseSpan(text string) (s Span, err error) {
	colon := strings.LastIndexByte(text, ':') // of several, one may belong to a path
	first, last, isRange := strings.Cut(text[colon+1:], "-")
	if !isRange {
		last = first
	}
	if colon >= 0 {
		var err2 error
		s.File = text[:colon]
		s.First, err = strconv.Atoi(first)
		if s.Last, err2 = strconv.Atoi(last); err == nil && err2 == nil && s.File != "" && 0 < s.First && s.First <= s.Last {
			return s, nil
		}
	} else if isRange {
		var err2 error
		s.From, err = time.ParseDuration(first)
		if s.To, err2 = time.ParseDuration(last); err == nil && err2 == nil && 0 <= s.From && s.From < s.To {
			return s, nil
		}
	}
	return Span{}, fmt.Errorf("span %q: want two times, as 4.2ms-4.4ms, or lines of a file, as train.go:30 or train.go:27-30", text)
}

// has reports whether an operation of a trace that began at a time is in the span.
func (s Span) has(op *Slice, began time.Duration) bool {
	if s.File == "" {
		return op.Begin-began < s.To && op.End-began > s.From
	}
	return op.At != nil && s.First <= op.At.Line && op.At.Line <= s.Last && (op.At.File == s.File || strings.HasSuffix(op.At.File, "/"+s.File))
}

// MaxNodes is how many operations a graph may have.
const MaxNodes = 1000

// Graph returns the operations that are in all of the spans, and which results they read. Results of other operations
// that they read are nodes outside of it, and so are results that were there when the trace began.
func (t *Trace) Graph(spans ...Span) (opgraph.Graph, error) {
	began := t.Verdict().Begin
	byID := map[ID]*Slice{}
	var ops []*Slice
	for i := range t.Slices {
		s := &t.Slices[i]
		if s.Kind != Op {
			continue
		}
		byID[s.ID] = s
		if s.Gate != (ID{}) {
			byID[s.Gate] = s
		}
		if !slices.ContainsFunc(spans, func(span Span) bool { return !span.has(s, began) }) {
			ops = append(ops, s)
		}
	}
	switch {
	case len(ops) == 0:
		return nil, errors.New("no operation of the trace is in the span")
	case len(ops) > MaxNodes:
		return nil, fmt.Errorf("there are %d operations in the span, and a graph has at most %d: choose a shorter one", len(ops), MaxNodes)
	}
	slices.SortStableFunc(ops, func(a, b *Slice) int {
		return cmp.Or(cmp.Compare(a.Enqueued, b.Enqueued), cmp.Compare(a.ID.Stream, b.ID.Stream), cmp.Compare(a.ID.Seq, b.ID.Seq))
	})
	g := graphMaker{byID: byID, isIn: map[*Slice]bool{}, known: map[*Slice]int{}, outside: map[ID]int{}}
	for _, op := range ops {
		g.isIn[op] = true
	}
	for _, op := range ops {
		g.add(op)
	}
	return g.graph, nil
}

// A graphMaker adds operations to a graph, each behind what it reads. Clocks may give many of them the same time.
type graphMaker struct {
	graph   opgraph.Graph
	byID    map[ID]*Slice
	isIn    map[*Slice]bool
	known   map[*Slice]int // the nodes of operations; -1 while what they read is added
	outside map[ID]int     // the nodes of what the trace does not have
}

// add adds an operation, unless it is there, and returns its node.
func (g *graphMaker) add(op *Slice) int {
	if node, ok := g.known[op]; ok {
		return node
	}
	g.known[op] = -1
	n := opgraph.Node{Op: op.Name, What: op.Result, IsOutside: !g.isIn[op]}
	if op.At != nil {
		n.Where = path.Base(op.At.File) + ":" + strconv.Itoa(op.At.Line)
	}
	if g.isIn[op] {
		for _, id := range op.Reads {
			if id == (ID{}) {
				continue
			}
			if in := g.input(id); in >= 0 && !slices.Contains(n.Inputs, in) {
				n.Inputs = append(n.Inputs, in)
			}
		}
	}
	g.known[op] = len(g.graph)
	g.graph = append(g.graph, n)
	return g.known[op]
}

// input returns the node of what has an ID; -1 if an operation seems to read its own result, which no trace has.
func (g *graphMaker) input(id ID) int {
	if op := g.byID[id]; op != nil {
		return g.add(op)
	}
	node, ok := g.outside[id]
	if !ok {
		node = len(g.graph)
		g.outside[id] = node
		g.graph = append(g.graph, opgraph.Node{Op: "tensor", IsOutside: true})
	}
	return node
}
