package clc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// arithmetic adds the macros for numbers of type dt.
func (p *program) arithmetic(dt device.DType) {
	p.define("T", ctype(dt))
	names := [3]string{"(x)", "(y)", "(z)"}
	if dt == device.Int64 {
		p.define("ADD(x, y)", expand("ag_add_(x, y)", dt, names))
		p.define("MUL(x, y)", expand("ag_mul_(x, y)", dt, names))
		p.define("MULADD(x, y, z)", "ADD(MUL(x, y), z)")
		return
	}
	p.define("ADD(x, y)", "((x) + (y))")
	p.define("MUL(x, y)", "((x) * (y))")
	p.define("MULADD(x, y, z)", expand("AG_FMA#(x, y, z)", dt, names))
}

// isProduct reports whether k multiplies numbers of one type.
func isProduct(k *device.Kernel) bool {
	return k.Body == nil && len(k.In) == 2 && k.In[0] == k.Out && k.In[1] == k.Out && isNumber(k.Out)
}

// A work group computes a square tile of a product of matrices. These are the sides of tiles.
const (
	narrowTile = 16  // for products with a side of at most narrowTile
	middleTile = 32  // for convolutions; see convTile
	wideTile   = 64  // for others
	largeTile  = 128 // for large products of float32; see floatTile
)

// depthOf returns how many steps of k are in local memory at a time. A narrow tile has more of them, so that an item
// has as many loads in flight as with a wide one.
func depthOf(tile int) int { return 1024 / tile }

// floatTile returns the side of the tiles for batch products of float32, m x n each. It is
// largeTile if there are enough large tiles to keep all units busy, and if they cover at most a
// quarter more area than wide ones.
func (l *Lowering) floatTile(batch, m, n int) int {
	large, wide := tiles(m, largeTile)*tiles(n, largeTile), tiles(m, wideTile)*tiles(n, wideTile)
	if batch*large < l.Limits.Units || 16*large > 5*wide {
		return wideTile
	}
	return largeTile
}

// convTile returns the side of the tiles for g products of o x places. Tiles are as large as possible, but there must
// be enough of them for all units.
func (l *Lowering) convTile(g, o, places int) int {
	for _, tile := range []int{wideTile, middleTile} {
		if min(o, places) > tile/2 && g*tiles(o, tile)*tiles(places, tile) >= l.Limits.Units {
			return tile
		}
	}
	return narrowTile
}

// tiles returns how many tiles of the given side cover n elements.
func tiles(n, tile int) int { return (n + tile - 1) / tile }

func (l *Lowering) lowerMatMul(c *device.Command) error {
	shape, rank := c.Args.Shape, len(c.Args.Shape)
	m, n, k := c.Args.Ints[0], c.Args.Ints[1], c.Args.Ints[2]
	a, b := c.Args.Strides[1], c.Args.Strides[2]
	if a == nil {
		a = append(shape[:rank:rank], m, k).Strides()
	}
	if b == nil {
		b = append(shape[:rank:rank], k, n).Strides()
	}
	batch := &l.axes[0]
	if err := batch.merge(shape, a[:rank], b[:rank]); err != nil {
		return err
	}
	tile, f := narrowTile, form{rank: printed(batch), flags: wide(batch.size())}
	if min(m, n) > narrowTile {
		tile = wideTile
		if c.Kernel.In[0] == device.Float32 {
			f.part = partFloat
			tile = l.floatTile(batch.size(), m, n)
		}
	}
	f.size = uint16(tile)
	s, err := l.source(c.Kernel, f, printMatMul)
	if err != nil {
		return err
	}
	l.within(c, 0, 0, c.N-1)
	l.spans(c, 1, 0, batch, l.matrix(m, k, a[rank:]))
	l.spans(c, 2, 1, batch, l.matrix(k, n, b[rank:]))
	down, across := tiles(m, tile), tiles(n, tile)
	l.push(uint64(m), uint64(n), uint64(k), uint64(down*across), uint64(across))
	if f.part == partFloat {
		l.side(c, 1, batch, a[rank], a[rank+1])
		l.side(c, 2, batch, b[rank+1], b[rank])
	} else {
		l.push(uint64(a[rank]), uint64(a[rank+1]), uint64(b[rank]), uint64(b[rank+1]))
	}
	l.off(c, 0, c.Kernel.Out.Size())
	l.off(c, 1, c.Kernel.In[0].Size())
	l.off(c, 2, c.Kernel.In[1].Size())
	l.push(c.Imm[0], c.Imm[1])
	args := mapArgs[len(c.Kernel.In)]
	if len(c.Kernel.In) == 3 {
		step := 1
		if c.Args.Strides[3] != nil {
			step = c.Args.Strides[3][0]
		}
		l.within(c, 3, min((n-1)*step, 0), max((n-1)*step, 0))
		l.off(c, 3, c.Kernel.In[2].Size())
		l.push(uint64(step))
	}
	if s.canFail {
		l.slot()
		args = mapFaultArgs[len(c.Kernel.In)]
	}
	l.view(batch, f.rank)
	l.launch(s, args, batch.size()*down*across, items)
	return nil
}

// side pushes how the kernel reads operand i of c, a float32 matrix. It pushes the operand's strides
// along the side of the product and along k, whether an item loads four neighbours along k (otherwise
// along the side), and whether these four are an aligned vector in memory.
func (l *Lowering) side(c *device.Command, i int, batch *axes, side, k int) {
	isAlong := k == 1 || side != 1
	step, other := side, k
	if isAlong {
		step, other = k, side
	}
	isVector := step == 1 && other%lanes == 0 && l.offset(c, i, 4)%lanes == 0
	for _, stride := range batch.strides[i-1][:batch.rank] {
		isVector = isVector && stride%lanes == 0
	}
	l.push(uint64(side), uint64(k), truth(isAlong), truth(isVector))
}

// truth returns a bool as a parameter: 1 or 0.
func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// matrix returns the space of a matrix with the given strides, the same for every operand number.
func (l *Lowering) matrix(rows, cols int, strides []int) *axes {
	m := &l.axes[3]
	m.rank, m.dims[0], m.dims[1] = 2, cols, rows
	for o := range m.strides {
		m.strides[o][0], m.strides[o][1] = strides[1], strides[0]
	}
	return m
}

// printMatMul prints a product of matrices. The kernel's expression, if it has one, is applied to
// each element of the product (operand 0) and the element of a vector for its column (operand 1).
func printMatMul(p *program, k *device.Kernel, f form) error {
	e := kernel.Arg(0, k.Out)
	if k.Body != nil {
		e, _ = k.Body.(*kernel.Expr)
	}
	if len(k.In) < 2 || k.In[0] != k.In[1] || !isNumber(k.In[0]) || k.Body == nil && len(k.In) != 2 {
		return unsupported(k)
	}
	made := device.Kernel{Name: k.Name, Code: k.Code, Out: k.Out, In: append([]device.DType{k.In[0]}, k.In[2:]...)}
	if err := isOf(&made, e); err != nil || e.Imms() > len(device.Command{}.Imm) {
		return unsupported(k)
	}
	p.arithmetic(k.In[0])
	p.define("O", ctype(k.Out))
	p.define("TILE", f.size)
	p.params("M", "N", "K", "TILES", "ACROSS")
	name, depth := "matmul", depthOf(int(f.size))
	if f.part == partFloat {
		name, depth = "matmulfloat", 4*items/int(f.size) // an item loads four elements of each operand
		p.params("A_SIDE", "A_K", "A_ALONG", "A_VECTOR", "B_SIDE", "B_K", "B_ALONG", "B_VECTOR")
	} else {
		p.params("A_ROW", "A_COL", "B_ROW", "B_COL")
	}
	p.define("DEPTH", depth)
	p.params("OUT", "A", "B", "IMM0", "IMM1")
	p.store(e, k.In[2:])
	p.view("batch", f.rank, 2)
	p.kernel(name)
	return nil
}

// store adds the macro STORE, which stores e of an element of a product, and the macro MORE, the
// kernel arguments that e needs, if any: a vector and the fault slots.
func (p *program) store(e *kernel.Expr, vector []device.DType) {
	var b strings.Builder
	more := ""
	for _, dt := range vector {
		p.params("VECTOR", "VECTOR_STEP")
		more = fmt.Sprintf("AG_GLOBAL const %s *vector, ", ctype(dt))
	}
	if p.canFail = slices.ContainsFunc(e.Nodes(), dividesInts); p.canFail {
		p.params("SLOT")
		more += "AG_GLOBAL ulong *fault, "
		b.WriteString("\t\tint wrong = 0;\n")
	}
	result := printExpr(&b, e, func(i int) string {
		return [...]string{"(sum)", "vector[P_VECTOR + (long)(column) * (long)P_VECTOR_STEP]"}[i]
	})
	if p.canFail {
		fmt.Fprintf(&b, "\t\tif (wrong) fault[P_SLOT] = %d;\n", zeroDivision)
	}
	p.define("MORE", more)
	p.define("STORE(at, sum, column)", lines("{\n"+b.String()+"\t\tout[at] = "+result+";\n\t}"))
}

// windowNames are the parameters that windows pushes.
var windowNames = []string{
	"IN0", "OUT0", "SIZE0", "STRIDE0", "PAD0", "STEP0", "HOLES0",
	"IN1", "OUT1", "SIZE1", "STRIDE1", "PAD1", "STEP1", "HOLES1",
}

func (l *Lowering) windows(ws *[2]device.Window) {
	for _, w := range ws {
		l.push(uint64(w.In), uint64(w.Out), uint64(w.Size), uint64(w.Stride), uint64(w.Pad), uint64(w.Step), uint64(w.Holes))
	}
}

func (l *Lowering) pushInts(values []int) {
	for _, v := range values {
		l.push(uint64(v))
	}
}

// fewChannels bounds the output channels (or places) of a convolution without tiles. With so few,
// reading the input again for each channel is faster than keeping a tile of it.
const fewChannels = 4

func (l *Lowering) lowerConv(c *device.Command) error {
	if !isProduct(c.Kernel) {
		return unsupported(c.Kernel)
	}
	ws, n, g, o := c.Args.Window, c.Args.Shape[0], c.Args.Shape[1], c.Args.Shape[2]
	places := n * ws[0].Out * ws[1].Out
	if o <= fewChannels || places <= fewChannels || ws[0].Holes > 1 || ws[1].Holes > 1 {
		s, err := l.source(c.Kernel, form{}, printConv)
		if err != nil {
			return err
		}
		l.push(uint64(g*o*places), uint64(g), uint64(o), uint64(c.Args.Ints[0]))
		l.convOperands(c)
		l.launch(s, outInIn, groupsFor(g*o*places), items)
		return nil
	}
	tile := l.convTile(g, o, places)
	f := form{part: partTiles, size: uint16(tile), flags: wide(max(places, c.Args.Ints[0]*ws[0].Size*ws[1].Size) + 2*depthOf(narrowTile))}
	s, err := l.source(c.Kernel, f, printConv)
	if err != nil {
		return err
	}
	down, across := tiles(o, tile), tiles(places, tile)
	l.push(uint64(places), uint64(g), uint64(o), uint64(c.Args.Ints[0]))
	l.convOperands(c)
	l.push(uint64(down*across), uint64(across))
	l.launch(s, outInIn, g*down*across, items)
	return nil
}

// convOperands pushes the windows, offsets and strides of a convolution.
func (l *Lowering) convOperands(c *device.Command) {
	ws, channels, shape := c.Args.Window, c.Args.Ints[0], c.Args.Shape
	n, g, o := shape[0], shape[1], shape[2]
	plane := ws[0].Out * ws[1].Out
	out, a, b := c.Args.Strides[0], c.Args.Strides[1], c.Args.Strides[2]
	if out == nil {
		out = []int{g * o * plane, o * plane, plane}
	}
	if a == nil {
		a = device.Shape{n, g, channels, ws[0].In, ws[1].In}.Strides()
	}
	if b == nil {
		b = device.Shape{g, o, channels, ws[0].Size, ws[1].Size}.Strides()
	}
	if channels > 0 {
		l.box(c, 1, a, n, g, channels, ws[0].In, ws[1].In)
		l.box(c, 2, b, g, o, channels, ws[0].Size, ws[1].Size)
	}
	l.box(c, 0, append(out[:3:3], 1), n, g, o, plane)
	l.windows(ws)
	for i := range 3 {
		l.off(c, i, c.Kernel.Out.Size())
	}
	l.pushInts(out)
	l.pushInts(a)
	l.pushInts(b)
}

// box does what spans does for a space with these lengths and strides.
func (l *Lowering) box(c *device.Command, i int, strides []int, lengths ...int) {
	a := &l.axes[3]
	a.rank = len(lengths)
	copy(a.dims[:], lengths)
	copy(a.strides[0][:], strides)
	l.spans(c, i, 0, a)
}

func printConv(p *program, k *device.Kernel, f form) error {
	p.arithmetic(k.Out)
	p.params("N", "GROUPS", "CHANNELS_OUT", "CHANNELS")
	p.params(windowNames...)
	p.params("OUT", "A", "B", "ON", "OG", "OO", "AN", "AG", "AC", "AY", "AX", "BG", "BO", "BC", "BK", "BL")
	if f.part != partTiles {
		p.kernel("conv")
		return nil
	}
	p.params("TILES", "ACROSS")
	p.define("TILE", f.size)
	p.define("DEPTH", depthOf(int(f.size)))
	p.kernel("convtiles")
	return nil
}

func (l *Lowering) lowerPool(c *device.Command) error {
	k, ws, shape := c.Kernel, c.Args.Window, c.Args.Shape
	in, rank := c.Args.Strides[1], len(c.Args.Shape)
	if in == nil {
		in = append(shape[:rank:rank], ws[0].In, ws[1].In).Strides()
	}
	planes := &l.axes[0]
	if err := planes.merge(shape, in[:rank]); err != nil {
		return err
	}
	n := planes.size() * ws[0].Out * ws[1].Out
	l.within(c, 0, 0, n-1)
	l.spans(c, 1, 0, planes, l.matrix(ws[0].In, ws[1].In, in[rank:]))
	f := form{rank: printed(planes), flags: wide(n)}
	s, err := l.source(k, f, printPool)
	if err != nil {
		return err
	}
	l.push(uint64(n))
	l.windows(ws)
	l.off(c, 0, k.Out.Size())
	l.off(c, 1, k.In[0].Size())
	l.pushInts(in[rank:])
	l.view(planes, f.rank)
	l.launch(s, outIn, groupsFor(n), items)
	return nil
}

func printPool(p *program, k *device.Kernel, f form) error {
	arg := k.Code == device.ArgPool
	r, ok := k.Body.(kernel.Reducer)
	switch {
	case !ok || len(k.In) != 1 || !isNumber(k.In[0]):
		return unsupported(k)
	case arg && (!isArg(k) || r != kernel.ReduceMax):
		return unsupported(k)
	case !arg && (k.In[0] != k.Out || r != kernel.ReduceMax && r != kernel.ReduceSum):
		return unsupported(k)
	}
	p.reducer(r, k.In[0])
	p.better(kernel.ReduceMax, k.In[0])
	p.define("O", ctype(k.Out))
	p.defineIf("ARG", arg)
	p.params("N")
	p.params(windowNames...)
	p.params("OUT", "IN", "ROW", "COL")
	p.view("planes", f.rank, 1)
	p.kernel("pool")
	return nil
}

func (l *Lowering) lowerCopy(c *device.Command) error {
	k := c.Kernel
	if k.Body != nil || len(k.In) != 1 || k.In[0] != k.Out {
		return unsupported(k)
	}
	space := &l.axes[0]
	shape := device.Shape{c.N}
	if c.Args != nil && (c.Args.Strides[0] != nil || c.Args.Strides[1] != nil) {
		shape = c.Args.Shape
	}
	if err := space.merge(shape, c.Strides(0), c.Strides(1)); err != nil {
		return err
	}
	l.spans(c, 0, 0, space)
	l.spans(c, 1, 1, space)
	if inner, outer, ok := space.turned(); ok {
		return l.copyTiles(c, space, inner, outer)
	}
	f := form{rank: printed(space), flags: wide(c.N)}
	s, err := l.source(k, f, printCopy)
	if err != nil {
		return err
	}
	l.push(uint64(c.N))
	l.off(c, 0, k.Out.Size())
	l.off(c, 1, k.Out.Size())
	l.view(space, f.rank)
	l.launch(s, outIn, groupsFor(c.N), items)
	return nil
}

func printCopy(p *program, k *device.Kernel, f form) error {
	p.define("T", ofSize(k.Out.Size()))
	p.params("N", "OUT", "IN")
	p.view("space", f.rank, 2)
	p.kernel("copy")
	return nil
}

// copyTile is the side of the square that a work group copies in a transposing Copy.
const copyTile = 32

// turned returns the axes with stride 1 in the output (operand 0) and in the input (operand 1). ok
// says that these are two different axes, both long enough to be worth tiles.
func (a *axes) turned() (inOut, inIn int, ok bool) {
	inOut, inIn = -1, -1
	for axis := range a.rank {
		if a.strides[0][axis] == 1 {
			inOut = axis
		}
		if a.strides[1][axis] == 1 {
			inIn = axis
		}
	}
	return inOut, inIn, inOut >= 0 && inIn >= 0 && inOut != inIn && min(a.dims[inOut], a.dims[inIn]) >= copyTile/4
}

// remove removes an axis.
func (a *axes) remove(axis int) {
	copy(a.dims[axis:], a.dims[axis+1:a.rank])
	for o := range a.operands {
		copy(a.strides[o][axis:], a.strides[o][axis+1:a.rank])
	}
	a.rank--
}

// copyTiles lowers a Copy that transposes two axes of the space.
func (l *Lowering) copyTiles(c *device.Command, space *axes, inOut, inIn int) error {
	k, rest := c.Kernel, &l.axes[1]
	*rest = *space
	rest.remove(max(inOut, inIn))
	rest.remove(min(inOut, inIn))
	f := form{part: partTiles, rank: printed(rest), flags: wide(rest.size())}
	s, err := l.source(k, f, printCopyTiles)
	if err != nil {
		return err
	}
	d0, d1 := space.dims[inOut], space.dims[inIn]
	down, across := (d0+copyTile-1)/copyTile, (d1+copyTile-1)/copyTile
	l.push(uint64(d0), uint64(d1), uint64(space.strides[1][inOut]), uint64(space.strides[0][inIn]), uint64(down*across), uint64(across))
	l.off(c, 0, k.Out.Size())
	l.off(c, 1, k.Out.Size())
	l.view(rest, f.rank)
	l.launch(s, outIn, rest.size()*down*across, items)
	return nil
}

func printCopyTiles(p *program, k *device.Kernel, f form) error {
	p.define("T", ofSize(k.Out.Size()))
	p.define("TILE", copyTile)
	p.params("D0", "D1", "STRIDE0", "STRIDE1", "TILES", "ACROSS", "OUT", "IN")
	p.view("rest", f.rank, 2)
	p.kernel("copytiles")
	return nil
}

// lowerConcat copies each part in a launch of its own.
func (l *Lowering) lowerConcat(c *device.Command) error {
	k, rows, at, space := c.Kernel, c.Args.Shape[0], 0, &l.axes[0]
	if k.Body != nil || len(k.In) != 0 {
		return unsupported(k)
	}
	l.within(c, 0, 0, c.N-1)
	width, size := c.N/rows, k.Out.Size()
	for i, part := range c.Args.Parts {
		if l.outside == nil && (part.Off < 0 || part.N < 0 || at+part.N > width || int64(part.Off+rows*part.N) > part.Buf.Bytes/int64(size)) {
			return fmt.Errorf("opencl: kernel %s: part %d reaches outside of its buffer or of the output", k.Name, i)
		}
		if part.N == 0 {
			continue
		}
		if err := space.merge(device.Shape{rows, part.N}, []int{width, 1}, nil); err != nil {
			return err
		}
		f := form{rank: printed(space), flags: wide(c.N)}
		s, err := l.source(k, f, printCopy)
		if err != nil {
			return err
		}
		base := 0
		if l.place.Parts != nil {
			base = int(l.place.Parts[i]) / size
		}
		l.push(uint64(rows*part.N), l.offset(c, 0, size)+uint64(at), uint64(base+part.Off))
		l.view(space, f.rank)
		l.launch(s, []Operand{{Buf, 0}, {Part, i}}, groupsFor(rows*part.N), items)
		at += part.N
	}
	return nil
}

func (l *Lowering) lowerFill(c *device.Command) error { return l.fill(c, form{}, c.Imm[0]) }

// zero appends the launch that sets the output to 0.
func (l *Lowering) zero(c *device.Command) error { return l.fill(c, form{part: partZero}, 0) }

func (l *Lowering) fill(c *device.Command, f form, bits uint64) error {
	f.flags = wide(c.N)
	s, err := l.source(c.Kernel, f, printFill)
	if err != nil {
		return err
	}
	l.within(c, 0, 0, c.N-1)
	l.push(uint64(c.N), bits)
	l.off(c, 0, c.Kernel.Out.Size())
	l.launch(s, outOnly, groupsFor(c.N), items)
	return nil
}

func printFill(p *program, k *device.Kernel, _ form) error {
	p.define("T", ofSize(k.Out.Size()))
	p.params("N", "VALUE", "OUT")
	p.kernel("fill")
	return nil
}

func (l *Lowering) lowerIota(c *device.Command) error {
	if !isNumber(c.Kernel.Out) {
		return unsupported(c.Kernel)
	}
	s, err := l.source(c.Kernel, form{flags: wide(c.N)}, printIota)
	if err != nil {
		return err
	}
	l.within(c, 0, 0, c.N-1)
	l.push(uint64(c.N), c.Imm[0], c.Imm[1])
	l.off(c, 0, c.Kernel.Out.Size())
	l.launch(s, outOnly, groupsFor(c.N), items)
	return nil
}

func printIota(p *program, k *device.Kernel, _ form) error {
	p.arithmetic(k.Out)
	p.define("START", value(k.Out, "P_IMM0"))
	p.define("STEP", value(k.Out, "P_IMM1"))
	p.params("N", "IMM0", "IMM1", "OUT")
	p.kernel("iota")
	return nil
}

func (l *Lowering) lowerRandom(c *device.Command) error {
	s, err := l.source(c.Kernel, form{}, printRandom)
	if err != nil {
		return err
	}
	var lo, span uint64
	if c.Kernel.Body == kernel.Ints {
		lo = uint64(c.Args.Ints[0])
		span = uint64(c.Args.Ints[1]) - lo
	}
	l.within(c, 0, 0, c.N-1)
	l.push(uint64(c.N), c.Imm[0], c.Imm[1], lo, span)
	l.off(c, 0, c.Kernel.Out.Size())
	l.launch(s, outOnly, groupsFor((c.N+3)/2), items)
	return nil
}

func printRandom(p *program, k *device.Kernel, _ form) error {
	d, ok := k.Body.(kernel.Distribution)
	if !ok || len(k.In) != 0 || (d == kernel.Ints) != (k.Out == device.Int64) || !isNumber(k.Out) {
		return unsupported(k)
	}
	per := 2
	if k.Out == device.Float32 {
		per = 4
	}
	p.define("T", ctype(k.Out))
	p.define("PER", per)
	p.define("P_TAG", fmt.Sprintf("%du", d.Tag(k.Out)))
	p.define("DRAW", "ag_"+d.String()+suffix(k.Out))
	p.params("N", "KEY", "POS", "LO", "SPAN", "OUT")
	p.kernel("random")
	return nil
}
