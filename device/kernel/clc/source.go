package clc

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

//go:embed dialect.h
var dialect string

//go:embed library.cl
var libraryText string

//go:embed kernels.cl
var kernelsText string

// A form is a variant of a kernel: the text depends on the device.Kernel and its form.
type form struct {
	part  part
	rank  uint8 // how many axes its views have room for
	flags flags
	size  uint16 // the side of a tile, a constant in the text
}

// A part is one of the kernels that a command consists of.
type part uint8

const (
	partWhole  part = iota // the command's main or only kernel
	partTree               // combines the folds of blocks
	partChunks             // sorts chunks
	partMerge              // merges sorted chunks
	partSums               // adds up the summands of a ScatterAdd
	partSettle             // finds the first wrong index
	partZero               // clears the output of a ScatterAdd
	partTiles              // a Conv or Copy by tiles
	partLong               // a Scan of long rows
	partFloat              // a MatMul of float32 by vectors
)

// flags are the yes-or-no choices of a form.
type flags uint16

const (
	isWide   flags = 1 << iota // element counts need 64 bits
	isView                     // operands are not contiguous
	isAlone                    // each item computes a result by itself
	isVector                   // operands are aligned for vectors
	isSoft                     // for a device without float64
)

// sources has all texts printed so far, by kernel and form, and by text.
var sources struct {
	mu     sync.RWMutex // guards what follows
	byForm map[formKey]*Source
	byText map[string]*Source
}

type formKey struct {
	kernel int
	form   form
}

// sourceOf returns the Source of form f of k. make prints it if it is new. It may be called
// concurrently.
func sourceOf(k *device.Kernel, f form, make func(*program, *device.Kernel, form) error) (*Source, error) {
	key := formKey{k.ID, f}
	sources.mu.RLock()
	s := sources.byForm[key]
	sources.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	p := &program{isWide: f.flags&isWide != 0, isSoft: f.flags&isSoft != 0}
	if err := make(p, k, f); err != nil {
		return nil, err
	}
	text := p.text()
	sources.mu.Lock()
	defer sources.mu.Unlock()
	if sources.byForm == nil {
		sources.byForm, sources.byText = map[formKey]*Source{}, map[string]*Source{}
	}
	s = sources.byText[text]
	if s == nil {
		s = &Source{ID: len(sources.byText), Name: p.name, Text: text, usesFP64: strings.Contains(text[len(dialect):], "double"), canFail: p.canFail, imms: p.imms, lanes: max(p.lanes, 1)}
		sources.byText[text] = s
	}
	sources.byForm[key] = s
	return s, nil
}

// A program is a text being printed.
type program struct {
	name    string
	canFail bool
	isWide  bool
	isSoft  bool
	imms    int             // see Source
	lanes   int             // see Source
	defines strings.Builder // macros and views
	words   int             // of the parameters so far
	body    string          // the kernel
}

// define adds a macro. name may include its operands.
func (p *program) define(name string, value any) {
	fmt.Fprintf(&p.defines, "#define %s %v\n", name, value)
}

// defineIf adds a macro that is 1 or 0.
func (p *program) defineIf(name string, is bool) {
	value := 0
	if is {
		value = 1
	}
	p.define(name, value)
}

// params adds words to the parameters, as macros P_NAME.
func (p *program) params(names ...string) {
	for _, name := range names {
		p.define("P_"+name, fmt.Sprintf("p.w[%d]", p.words))
		p.words++
	}
}

// view adds the function ag_locate_NAME for a view with the given number of operands and room for
// rank axes. Its parameters are the words that [Lowering.view] pushes. The text is unrolled and
// returns after the view's last axis: with a loop, the compiler would have to keep the parameters
// in memory.
func (p *program) view(name string, rank uint8, operands int) {
	first, dims := p.words, p.words+1
	p.words += 1 + int(rank)*(1+operands)
	b := &p.defines
	fmt.Fprintf(b, "AG_INLINE void ag_locate_%s(I i, const ag_params *p", name)
	for o := range operands {
		fmt.Fprintf(b, ", long *x%d", o)
	}
	fmt.Fprintf(b, ")\n{\n\tI q, c;\n")
	for axis := range int(rank) {
		index := "i"
		if axis+1 < int(rank) {
			fmt.Fprintf(b, "\tq = p->w[%d] > %d ? i / (I)p->w[%d] : 0;\n\tc = i - q * (I)p->w[%[3]d];\n", first, axis+1, dims+axis)
			index = "c"
		}
		for o := range operands {
			fmt.Fprintf(b, "\t*x%d += (long)%s * (long)p->w[%d];\n", o, index, dims+(o+1)*int(rank)+axis)
		}
		if axis+1 < int(rank) {
			fmt.Fprintf(b, "\tif (p->w[%d] <= %d) return;\n\ti = q;\n", first, axis+1)
		}
	}
	b.WriteString("}\n")
}

// kernel takes the kernel of this name from kernels.cl as the program's.
func (p *program) kernel(name string) { p.name, p.body = "ag_"+name, kernelTexts()[name] }

// text returns the whole program.
func (p *program) text() string {
	index := "uint"
	if p.isWide {
		index = "ulong"
	}
	own := p.defines.String() + p.body
	if p.isSoft {
		own = strings.ReplaceAll(own, "ag_pow_f32(", "ag_soft_pow(")
	}
	var b strings.Builder
	b.WriteString(dialect)
	for _, paragraph := range needed(own) {
		b.WriteString(paragraph + "\n")
	}
	fmt.Fprintf(&b, "typedef struct { ulong w[%d]; } ag_params;\ntypedef %s I;\n%s", max(p.words, 1), index, own)
	return b.String()
}

var kernelTexts = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	for _, part := range strings.Split(kernelsText, "\n//// ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		texts[name] = text
	}
	return texts
})

var word = regexp.MustCompile(`\bag_\w+`)

// library has the paragraphs of library.cl, each under the first ag_ name in it.
var library = sync.OnceValue(func() map[string]string {
	paragraphs := map[string]string{}
	for _, text := range strings.Split(libraryText, "\n\n")[1:] {
		paragraphs[word.FindString(text)] = text
	}
	return paragraphs
})

// needed lists the library paragraphs that a text needs, each after those that it needs itself.
func needed(text string) (paragraphs []string) {
	seen := map[string]bool{}
	var visit func(text string)
	visit = func(text string) {
		for _, name := range word.FindAllString(text, -1) {
			if paragraph, ok := library()[name]; ok && !seen[name] {
				seen[name] = true
				visit(paragraph)
				paragraphs = append(paragraphs, paragraph)
			}
		}
	}
	visit(text)
	return paragraphs
}

// ctype returns the name of dt in the text.
func ctype(dt device.DType) string {
	return [...]string{device.Float32: "float", device.Float64: "double", device.Int64: "long", device.Bool: "uchar",
		device.Float16: "ushort", device.BFloat16: "ushort", device.Int32: "int", device.Uint8: "uchar"}[dt]
}

// suffix returns the end of the names of the library's functions for dt.
func suffix(dt device.DType) string {
	return [...]string{device.Float32: "_f32", device.Float64: "_f64", device.Int64: "_i64", device.Bool: "_bool",
		device.Float16: "_f16", device.BFloat16: "_bf16"}[dt]
}

// isNumber reports whether kernels compute with elements of type dt, and these are numbers.
func isNumber(dt device.DType) bool { return kernel.PrimAdd.Func(dt) != nil }

// ofSize returns an unsigned type of the given size, for kernels that only move elements.
func ofSize(bytes int) string {
	return map[int]string{1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[bytes]
}

// value returns an expression for the value of type dt with the given bits.
func value(dt device.DType, bits string) string {
	switch dt {
	case device.Float32:
		return "AG_FLOAT32(" + bits + ")"
	case device.Float64:
		return "AG_FLOAT64(" + bits + ")"
	case device.Int64:
		return "((long)(" + bits + "))"
	case device.Float16, device.BFloat16, device.Int32, device.Uint8:
		return "((" + ctype(dt) + ")(" + ofSize(dt.Size()) + ")(" + bits + "))"
	}
	return "((uchar)((" + bits + ") != 0))"
}
