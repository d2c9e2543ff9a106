// Package clc prints kernels in OpenCL C: it turns a command of package device into launches of
// kernels on a GPU, whose results are those that package kernel defines.
//
// The text is OpenCL C 1.2 with a layer of macros (dialect.h), so that clang can compile the same
// for NVIDIA's PTX. It computes with the operations that IEEE 754 rounds correctly, fused
// multiply-adds and bits, contraction being off, and with the functions of package kernel made of
// these: on a device that rounds so, and keeps denormal numbers, all results have the bits of the
// CPU's. An OpenCL device does so in float64, and in float32 where it offers
// -cl-fp32-correctly-rounded-divide-sqrt; without that, quotients and square roots of float32 may
// be 3 ulp off.
//
// The package knows no driver. It neither compiles the text nor runs anything: backends do.
//
//	l := clc.Lowering{Limits: limits}
//	err := l.Lower(&command, &clc.Place{})
//	for _, launch := range l.Launches {
//		// compile launch.Source, set launch.Args and launch.Params, enqueue
//	}
package clc

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device"
)

// Options are what a program is compiled with at least. Where the device has CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
// -cl-fp32-correctly-rounded-divide-sqrt belongs to them.
const Options = "-cl-std=CL1.2"

// Limits are what a device can do.
type Limits struct {
	FP64       bool // it has float64; without, commands that need it fail with ErrUnsupported
	GroupSize  int  // items of a work group: 256 are needed
	LocalBytes int  // memory of a work group: 32 KiB are needed
	Units      int  // work groups that run side by side, about
}

// A Source is the text of one program, with one kernel. Equal texts are the same Source.
type Source struct {
	ID   int // dense, from 0
	Name string
	Text string

	usesFP64 bool
	canFail  bool // takes the fault slots
	lanes    int  // elements that an item of a Map has at a time
}

// An OperandKind tells what memory an Operand is.
type OperandKind uint8

const (
	Buf     OperandKind = iota // Index says which of Command.Buf
	Scratch                    // Index says which of Lowering.Scratch
	Fault                      // the buffer of all fault slots
	Part                       // Index says which of the Parts of Command.Args
)

// An Operand is a pointer argument of a kernel.
type Operand struct {
	Kind  OperandKind
	Index int
}

// A Launch runs the kernel of Source, in one dimension, over Groups work groups of Local items
// each. The kernel's arguments are Args, in order, and then Params: one struct by value.
type Launch struct {
	Source        *Source
	Args          []Operand // not to be changed
	Params        []uint64
	Groups, Local int
}

// A Place tells where the operands of a command are.
type Place struct {
	// Base is how many bytes before each buffer begins the memory that the kernel is given for it: a multiple of 8.
	Base [device.MaxOperands]int64
	// Parts is the same for each of Args.Parts; nil if it is 0 for all.
	Parts []int64
	// Fault is the number of the command's slot, FaultWords long, in the buffer of fault slots.
	Fault int64
}

// A Lowering turns commands into launches. It is reused, by one goroutine at a time.
type Lowering struct {
	Limits Limits
	// Launches of all commands since Reset, to be run in order. Their Params are good until the next Reset.
	Launches []Launch
	// Scratch are the bytes of the buffers that the launches of the last command need besides; their
	// contents don't matter before.
	Scratch []int64
	// CanFail says that the last command writes to its fault slot if it fails; it must be zero before.
	CanFail bool

	words   []uint64 // of Params
	first   int      // where those of the next launch begin
	place   *Place
	axes    [4]axes
	outside error // the first operand that reaches outside of its buffer
}

// Reset forgets the launches.
func (l *Lowering) Reset() {
	l.Launches, l.words = l.Launches[:0], l.words[:0]
}

// Lower appends the launches of c, none if it has no elements. With an error nothing was appended:
// it wraps ErrUnsupported, as for the codes Math, Upload and Download, or says that an operand
// reaches outside of its buffer. An element-wise command costs no memory but what is appended.
func (l *Lowering) Lower(c *device.Command, at *Place) error {
	l.Scratch, l.CanFail, l.place = l.Scratch[:0], false, at
	if l.Limits.GroupSize < 256 || l.Limits.LocalBytes < 32<<10 {
		return fmt.Errorf("opencl: work groups of %d items with %d bytes, 256 with %d are needed: %w", l.Limits.GroupSize, l.Limits.LocalBytes, 32<<10, device.ErrUnsupported)
	}
	if int(c.Kernel.Code) >= len(lowerings) || lowerings[c.Kernel.Code] == nil || len(c.Kernel.In) >= device.MaxOperands {
		return unsupported(c.Kernel)
	}
	if c.N <= 0 {
		return nil
	}
	launches, words := len(l.Launches), len(l.words)
	l.first = words
	l.outside = nil
	err := lowerings[c.Kernel.Code](l, c)
	if err == nil {
		err = l.outside
	}
	if err != nil {
		l.Launches, l.words = l.Launches[:launches], l.words[:words]
		return err
	}
	return nil
}

var lowerings = [...]func(*Lowering, *device.Command) error{
	device.Map:        (*Lowering).lowerMap,
	device.Reduce:     (*Lowering).lowerReduce,
	device.ArgReduce:  (*Lowering).lowerArgReduce,
	device.Scan:       (*Lowering).lowerScan,
	device.ArgSort:    (*Lowering).lowerArgSort,
	device.Rows:       (*Lowering).lowerRows,
	device.MatMul:     (*Lowering).lowerMatMul,
	device.Conv:       (*Lowering).lowerConv,
	device.Pool:       (*Lowering).lowerPool,
	device.ArgPool:    (*Lowering).lowerPool,
	device.Gather:     (*Lowering).lowerGather,
	device.ScatterAdd: (*Lowering).lowerScatterAdd,
	device.Copy:       (*Lowering).lowerCopy,
	device.Concat:     (*Lowering).lowerConcat,
	device.Fill:       (*Lowering).lowerFill,
	device.Iota:       (*Lowering).lowerIota,
	device.Random:     (*Lowering).lowerRandom,
}

func unsupported(k *device.Kernel) error {
	return fmt.Errorf("opencl: kernel %s, a %v of %v to %v: %w", k.Name, k.Code, k.In, k.Out, device.ErrUnsupported)
}

// FaultWords is how many words of 8 bytes a fault slot has: what went wrong (0: nothing), and for a wrong index its
// place in row-major order, the index, and the length of the axis.
const FaultWords = 4

const (
	wrongIndex   = 1
	zeroDivision = 2
)

// errZeroDivision is the error of the CPU, whose kernels panic as Go does: a program says the same
// wherever it computes.
var errZeroDivision = func() (err error) {
	defer func() { err = fmt.Errorf("kernel panicked: %w", recover().(error)) }()
	zero := 0
	return fmt.Errorf("no panic: %d", 1/zero)
}()

// Failure is the error of a command that has run, of which this is the fault slot.
func Failure(slot []int64) error {
	switch slot[0] {
	case 0:
		return nil
	case wrongIndex:
		return &device.IndexError{Index: slot[2], Length: int(slot[3])}
	}
	return errZeroDivision
}

// within notes that the elements of operand i of c from least to most, where it begins being 0, are used.
func (l *Lowering) within(c *device.Command, i, least, most int) {
	dt := c.Kernel.Out
	if i > 0 {
		dt = c.Kernel.In[i-1]
	}
	if l.outside == nil && (c.Off[i]+least < 0 || int64(c.Off[i]+most+1) > c.Buf[i].Bytes/int64(dt.Size())) {
		l.outside = fmt.Errorf("opencl: kernel %s: operand %d reaches outside of its buffer", c.Kernel.Name, i)
	}
}

// spans notes that operand i of c is used over all of these spaces together, in each of which it is operand o.
func (l *Lowering) spans(c *device.Command, i, o int, spaces ...*axes) {
	least, most := 0, 0
	for _, a := range spaces {
		for axis, d := range a.dims[:a.rank] {
			if d == 0 {
				return
			}
			span := (d - 1) * a.strides[o][axis]
			least, most = least+min(span, 0), most+max(span, 0)
		}
	}
	l.within(c, i, least, most)
}

// push appends words to the parameters of the next launch.
func (l *Lowering) push(words ...uint64) { l.words = append(l.words, words...) }

// offset is where operand i of c begins, in elements of the given size.
func (l *Lowering) offset(c *device.Command, i, size int) uint64 {
	return uint64(l.place.Base[i])/uint64(size) + uint64(c.Off[i])
}

// off pushes it.
func (l *Lowering) off(c *device.Command, i, size int) { l.push(l.offset(c, i, size)) }

// slot pushes where the command's fault slot begins.
func (l *Lowering) slot() {
	l.CanFail = true
	l.push(uint64(l.place.Fault) * FaultWords)
}

// launch appends a launch with the words pushed since the last one. All of a command's launches ask
// for the same form of source first.
func (l *Lowering) launch(s *Source, args []Operand, groups, local int) {
	l.Launches = append(l.Launches, Launch{Source: s, Args: args, Params: l.words[l.first:len(l.words):len(l.words)], Groups: groups, Local: local})
	l.first = len(l.words)
}

// scratch asks for a scratch buffer.
func (l *Lowering) scratch(bytes int) { l.Scratch = append(l.Scratch, int64(bytes)) }

// source is the Source of a form of k, from the table or made by make.
func (l *Lowering) source(k *device.Kernel, f form, make func(*program, *device.Kernel, form) error) (*Source, error) {
	s, err := sourceOf(k, f, make)
	if err == nil && s.usesFP64 && !l.Limits.FP64 {
		f.flags |= isSoft
		s, err = sourceOf(k, f, make)
	}
	if err == nil && s.usesFP64 && !l.Limits.FP64 {
		return nil, fmt.Errorf("opencl: kernel %s needs float64, which the device has not: %w", k.Name, device.ErrUnsupported)
	}
	return s, err
}

const (
	items     = 256     // of a group
	maxGroups = 1 << 16 // of a kernel that goes on behind what the groups together have worked on
)

// groupsFor is how many groups work on n elements, an item on one or more.
func groupsFor(n int) int { return min((n+items-1)/items, maxGroups) }
