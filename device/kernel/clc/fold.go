package clc

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

var (
	outIn        = []Operand{{Buf, 0}, {Buf, 1}}
	outInIn      = []Operand{{Buf, 0}, {Buf, 1}, {Buf, 2}}
	outScratches = []Operand{{Buf, 0}, {Scratch, 0}, {Scratch, 1}}
)

// split merges the kept axes of c and its folded axes separately, with the strides of the input
// and, if withOut is set, those of the output.
func (l *Lowering) split(c *device.Command, withOut bool) (kept, folded *axes, err error) {
	kept, folded = &l.axes[0], &l.axes[1]
	shape, n := c.Args.Shape, c.Args.Kept
	in, out := c.Args.Strides[1], c.Args.Strides[0]
	if in == nil {
		in = shape.Strides()
	}
	if !withOut {
		if err := kept.merge(shape[:n], in[:n]); err != nil {
			return nil, nil, err
		}
		return kept, folded, folded.merge(shape[n:], in[n:])
	}
	if out == nil {
		out = shape.Strides()
	}
	if err := kept.merge(shape[:n], in[:n], out[:n]); err != nil {
		return nil, nil, err
	}
	return kept, folded, folded.merge(shape[n:], in[n:], out[n:])
}

// foldForm returns the form of a kernel with these two views.
func foldForm(kept, folded *axes) form {
	return form{rank: printed(kept, folded), flags: wide(max(kept.size(), folded.size()))}
}

// areColumns reports whether neighbouring results are folds of neighbours in memory, while the
// elements of one result are not neighbours.
func areColumns(kept, folded *axes) bool {
	return kept.rank > 0 && kept.strides[0][0] == 1 && !(folded.rank > 0 && folded.strides[0][0] == 1)
}

// columns is the least number of neighbouring results that a work group folds together by columns.
const columns = 16

// folding returns the reducer of the Reduce kernel k, and the expression of its inputs that it
// folds.
func folding(k *device.Kernel) (kernel.Reducer, *kernel.Expr, error) {
	var r kernel.Reducer
	var e *kernel.Expr
	switch body := k.Body.(type) {
	case kernel.Reducer:
		r, e = body, kernel.Arg(0, k.Out)
	case kernel.FoldOf:
		r, e = body.By, body.Expr
	default:
		return 0, nil, unsupported(k)
	}
	if err := isOf(k, e); err != nil || r.Prim().Func(k.Out) == nil || len(k.In) == 0 {
		return 0, nil, unsupported(k)
	}
	return r, e, nil
}

func (l *Lowering) lowerReduce(c *device.Command) error {
	kept, folded, inputs := &l.axes[0], &l.axes[1], len(c.Kernel.In)
	if err := l.splitInputs(c, kept, folded); err != nil {
		return err
	}
	size, n := c.Kernel.Out.Size(), folded.size()
	blocks := max((n+kernel.Block-1)/kernel.Block, 1)
	l.within(c, 0, 0, c.N-1)
	for i := range inputs {
		l.spans(c, i+1, i, kept, folded)
	}
	width := kernel.LanesFor(max(n, 1))
	together, byColumns := items/width, areColumns(kept, folded) && c.N >= columns
	if byColumns {
		together = max(together, columns)
	}
	f := foldForm(kept, folded)
	s, err := l.source(c.Kernel, f, printReduce)
	if err != nil {
		return err
	}
	args := mapArgs[inputs]
	l.push(uint64(c.N*blocks), uint64(n), uint64(blocks), uint64(width), uint64(together), truth(byColumns))
	if blocks > 1 {
		args = blockArgs[inputs]
		l.push(0)
	} else {
		l.off(c, 0, size)
	}
	for i, dt := range c.Kernel.In {
		l.off(c, i+1, dt.Size())
	}
	for i := range s.imms {
		l.push(c.Immediate(i))
	}
	if s.canFail {
		l.slot()
		args = append(args[:len(args):len(args)], Operand{Kind: Fault})
	}
	l.view(kept, f.rank)
	l.view(folded, f.rank)
	l.launch(s, args, (c.N*blocks+together-1)/together, items)
	if blocks == 1 {
		return nil
	}
	return l.combine(c, blocks)
}

// splitInputs merges the kept axes of c and its folded axes separately, with the strides of all
// inputs.
func (l *Lowering) splitInputs(c *device.Command, kept, folded *axes) error {
	shape, n := c.Args.Shape, c.Args.Kept
	var outer, inner [device.MaxInputs][]int
	for i := range c.Kernel.In {
		in := c.Strides(i + 1)
		if in == nil {
			in = shape.Strides()
		}
		outer[i], inner[i] = in[:n], in[n:]
	}
	inputs := len(c.Kernel.In)
	if err := kept.merge(shape[:n], outer[:inputs]...); err != nil {
		return err
	}
	return folded.merge(shape[n:], inner[:inputs]...)
}

// blockArgs are the arguments of a kernel that folds blocks into scratch memory, by its number of
// inputs.
var blockArgs [device.MaxInputs + 1][]Operand

func init() {
	for inputs := range device.MaxInputs + 1 {
		blockArgs[inputs] = append(blockArgs[inputs], Operand{Scratch, 0})
		for i := range inputs {
			blockArgs[inputs] = append(blockArgs[inputs], operandOf(i+1))
		}
	}
}

// combine appends the launch that combines the results of the blocks of each row.
func (l *Lowering) combine(c *device.Command, blocks int) error {
	s, err := l.source(c.Kernel, form{part: partTree}, printTree)
	if err != nil {
		return err
	}
	size := c.Kernel.Out.Size()
	l.scratch(c.N * blocks * size)
	l.scratch(c.N * ((blocks + 1) / 2) * size)
	l.push(uint64(blocks))
	l.off(c, 0, size)
	l.launch(s, outScratches, c.N, items)
	return nil
}

// reducerOf returns the reducer by which k folds elements of type dt.
func reducerOf(k *device.Kernel, dt device.DType) (kernel.Reducer, error) {
	r, ok := k.Body.(kernel.Reducer)
	if !ok || len(k.In) != 1 || r.Prim().Func(dt) == nil {
		return 0, unsupported(k)
	}
	return r, nil
}

// reducer adds the macros of a reducer of elements of type dt.
func (p *program) reducer(r kernel.Reducer, dt device.DType) {
	p.define("T", ctype(dt))
	p.define("OP(x, y)", reducerText(r, dt))
	p.define("IDENTITY", value(dt, fmt.Sprintf("%#xUL", r.Identity(dt))))
}

func printReduce(p *program, k *device.Kernel, f form) error {
	r, e, err := folding(k)
	if err != nil {
		return err
	}
	p.canFail = slices.ContainsFunc(e.Nodes(), dividesInts)
	p.reducer(r, k.Out)
	p.define("ITEMS", items)
	p.define("MOST", max(items, columns*kernel.Lanes))
	p.params("N", "LEN", "BLOCKS", "WIDTH", "TOGETHER", "COLUMNS", "OUT")
	var inputs, begin, locate, bases, places string
	for i, dt := range k.In {
		p.params(fmt.Sprintf("IN%d", i))
		inputs += fmt.Sprintf(", AG_GLOBAL const %s *in%d", ctype(dt), i)
		begin += fmt.Sprintf("long base%d = P_IN%[1]d; ", i)
		locate += fmt.Sprintf("long at%d = base%[1]d; ", i)
		bases += fmt.Sprintf(", &base%d", i)
		places += fmt.Sprintf(", &at%d", i)
	}
	p.imms = e.Imms()
	for i := range p.imms {
		p.params(fmt.Sprintf("IMM%d", i))
	}
	var take strings.Builder
	result := printExpr(&take, e, func(i int) string { return fmt.Sprintf("in%d[at%[1]d]", i) })
	if p.canFail {
		p.params("SLOT")
		inputs += ", AG_GLOBAL ulong *fault"
		locate += "int wrong = 0; "
		fmt.Fprintf(&take, "\t\tif (wrong) fault[P_SLOT] = %d;\n", zeroDivision)
	}
	fmt.Fprintf(&take, "\t\tacc = OP(acc, %s);", result)
	p.define("INPUTS", inputs[2:])
	p.define("BEGIN", begin+"ag_locate_kept((I)row, &p"+bases+");")
	p.define("LOCATE", locate+"ag_locate_folded((I)k, &p"+places+");")
	p.define("TAKE(acc)", lines(take.String()))
	p.view("kept", f.rank, len(k.In))
	p.view("folded", f.rank, len(k.In))
	p.kernel("reduce")
	return nil
}

// lines returns text as the body of a macro with several lines.
func lines(text string) string { return "\\\n" + strings.ReplaceAll(text, "\n", " \\\n") }

func printTree(p *program, k *device.Kernel, _ form) error {
	r, _, err := folding(k)
	if err != nil {
		return err
	}
	p.reducer(r, k.Out)
	p.params("BLOCKS", "OUT")
	p.kernel("tree")
	return nil
}

func (l *Lowering) lowerArgReduce(c *device.Command) error {
	kept, folded, err := l.split(c, false)
	if err != nil {
		return err
	}
	l.within(c, 0, 0, c.N-1)
	l.spans(c, 1, 0, kept, folded)
	f, n, groups := foldForm(kept, folded), folded.size(), c.N
	if n < items || areColumns(kept, folded) && c.N >= items {
		f.flags |= isAlone
		groups = (c.N + items - 1) / items
	}
	s, err := l.source(c.Kernel, f, printArgReduce)
	if err != nil {
		return err
	}
	l.push(uint64(c.N), uint64(n))
	l.off(c, 0, c.Kernel.Out.Size())
	l.off(c, 1, c.Kernel.In[0].Size())
	l.view(kept, f.rank)
	l.view(folded, f.rank)
	l.launch(s, outIn, groups, items)
	return nil
}

// better adds the macro BETTER for the reducer max or min of elements of type dt.
func (p *program) better(r kernel.Reducer, dt device.DType) {
	than := ">"
	if r == kernel.ReduceMin {
		than = "<"
	}
	text := "((x) " + than + " (y))"
	if dt.IsFloat() {
		text = "((y) == (y) && ((x) != (x) || " + text + "))"
	}
	p.define("BETTER(x, y)", text)
}

// isArg reports whether k finds the index of a greatest or least element.
func isArg(k *device.Kernel) bool {
	r, ok := k.Body.(kernel.Reducer)
	return ok && (r == kernel.ReduceMax || r == kernel.ReduceMin) && len(k.In) == 1 && isNumber(k.In[0]) && k.Out == device.Int64
}

func printArgReduce(p *program, k *device.Kernel, f form) error {
	if !isArg(k) {
		return unsupported(k)
	}
	p.define("T", ctype(k.In[0]))
	p.better(k.Body.(kernel.Reducer), k.In[0])
	p.defineIf("ALONE", f.flags&isAlone != 0)
	p.params("N", "LEN", "OUT", "IN")
	p.view("kept", f.rank, 1)
	p.view("folded", f.rank, 1)
	p.kernel("argreduce")
	return nil
}

// A work group scans each row of at least longRow elements. If there are manyRows rows or more, an
// item scans each row: this is enough to keep a device busy.
const (
	longRow  = 128
	manyRows = 1 << 12
)

func (l *Lowering) lowerScan(c *device.Command) error {
	kept, folded, err := l.split(c, true)
	if err != nil {
		return err
	}
	l.spans(c, 0, 1, kept, folded)
	l.spans(c, 1, 0, kept, folded)
	f, rows, n := foldForm(kept, folded), kept.size(), folded.size()
	groups := groupsFor(rows)
	if n >= longRow && rows < manyRows {
		f.part, groups = partLong, rows
	}
	s, err := l.source(c.Kernel, f, printScan)
	if err != nil {
		return err
	}
	l.push(uint64(rows), uint64(n), uint64(c.Args.Ints[0]))
	l.off(c, 0, c.Kernel.Out.Size())
	l.off(c, 1, c.Kernel.Out.Size())
	l.view(kept, f.rank)
	l.view(folded, f.rank)
	l.launch(s, outIn, groups, items)
	return nil
}

func printScan(p *program, k *device.Kernel, f form) error {
	r, err := reducerOf(k, k.Out)
	if err != nil || k.In[0] != k.Out {
		return unsupported(k)
	}
	p.reducer(r, k.Out)
	p.params("N", "LEN", "BACK", "OUT", "IN")
	p.view("kept", f.rank, 2)
	p.view("folded", f.rank, 2)
	if f.part == partLong {
		p.define("CHUNK", 4*items)
		p.kernel("scanrow")
		return nil
	}
	p.kernel("scan")
	return nil
}

// rowBlocks is how many blocks of a long row a work group folds at a time.
const rowBlocks = 4

// rowArgs are the arguments of the kernel rows, by its number of inputs. Operand 1 stands in for
// missing inputs, which the kernel does not access.
var rowArgs = [...][]Operand{
	1: {{Buf, 0}, {Buf, 1}, {Buf, 1}, {Buf, 1}},
	2: {{Buf, 0}, {Buf, 1}, {Buf, 2}, {Buf, 1}},
	3: {{Buf, 0}, {Buf, 1}, {Buf, 2}, {Buf, 3}},
}

func (l *Lowering) lowerRows(c *device.Command) error {
	kept, row, err := l.split(c, true)
	if err != nil {
		return err
	}
	k, shape, n := c.Kernel, c.Args.Shape, c.Args.Kept
	in, out := c.Args.Strides[1], c.Args.Strides[0]
	if in == nil {
		in = shape.Strides()
	}
	if out == nil {
		out = shape.Strides()
	}
	if err := row.merge(shape[n:], in[n:], out[n:], c.Args.Strides[2], c.Args.Strides[3]); err != nil {
		return err
	}
	f := foldForm(kept, row)
	l.spans(c, 0, 1, kept, row)
	l.spans(c, 1, 0, kept, row)
	for i := 2; i <= len(k.In); i++ {
		l.spans(c, i, i, row)
	}
	f.rank = printed(kept, row)
	lanes := kernel.Lanes
	if row.size() > kernel.Block {
		lanes *= rowBlocks
	}
	s, err := l.source(k, f, printRows)
	if err != nil {
		return err
	}
	size := k.Out.Size()
	l.push(uint64(row.size()), c.Imm[0], uint64(len(k.In)))
	for i := range device.MaxOperands {
		l.off(c, i, size)
	}
	l.view(kept, f.rank)
	l.view(row, f.rank)
	l.launch(s, rowArgs[len(k.In)], kept.size(), lanes)
	return nil
}

func printRows(p *program, k *device.Kernel, f form) error {
	r, ok := k.Body.(kernel.RowFunc)
	if !ok || len(k.In) < 1 || len(k.In) > 3 || !k.Out.IsFloat() || k.Out.IsStorage() || len(k.In) > 1 && !r.Norms() {
		return unsupported(k)
	}
	for _, dt := range k.In {
		if dt != k.Out {
			return unsupported(k)
		}
	}
	dt := k.Out
	p.define("T", ctype(dt))
	for _, other := range kernel.RowFuncs() {
		p.defineIf(map[kernel.RowFunc]string{kernel.Softmax: "SOFTMAX", kernel.LogSoftmax: "LOGSOFTMAX", kernel.LayerNorm: "LAYERNORM", kernel.RMSNorm: "RMSNORM"}[other], r == other)
	}
	p.define("MOST", kernel.Lanes*rowBlocks)
	p.define("ADD(x, y)", "((x) + (y))")
	for _, macro := range [][2]string{{"MAX(x, y)", "ag_max_((x), (y))"}, {"ABS(x)", "ag_abs_(x)"}, {"EXP(x)", "ag_exp_(x)"}, {"LOG(x)", "ag_log_(x)"}, {"SQRT(x)", "AG_SQRT#(x)"}} {
		p.define(macro[0], expand(macro[1], dt, [3]string{"x", "y", "z"}))
	}
	p.define("LEAST", value(dt, fmt.Sprintf("%#xUL", kernel.BitsOf(math.Inf(-1), dt))))
	p.define("INFINITE", value(dt, fmt.Sprintf("%#xUL", kernel.BitsOf(math.Inf(1), dt))))
	p.define("EPS", value(dt, "P_EPS"))
	p.params("LEN", "EPS", "INPUTS", "OUT", "IN", "GAIN", "BIAS")
	p.view("kept", f.rank, 2)
	p.view("row", f.rank, 4)
	p.kernel("rows")
	return nil
}
