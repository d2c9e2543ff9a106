package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec/asm/neon"
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A vector is a virtual register of any size.
type vector = reg.VecVirtual

// An isa is one that loops are written for.
type isa struct {
	name  string // that of the constant in package vec
	bytes int    // of a vector
	new   func() vector
}

var (
	avx512 = &isa{"AVX512", 64, ZMM}
	avx2   = &isa{"AVX2", 32, YMM}
	neons  = &isa{"NEON", 32, YMM} // what is written for AVX2, translated
	isas   = []*isa{avx512, avx2}  // those that are written
)

// base is the one whose functions are written only once and serve all ISAs.
func base() *isa { return isas[len(isas)-1] }

// An element is a type of what tensors hold.
type element struct {
	name string // that of the constant in package device
	size int
}

var (
	float32s = &element{"Float32", 4}
	float64s = &element{"Float64", 8}
	int64s   = &element{"Int64", 8}
	bools    = &element{"Bool", 1}

	float16s  = &element{"Float16", 2}
	bfloat16s = &element{"BFloat16", 2}
	int32s    = &element{"Int32", 4}
	uint8s    = &element{"Uint8", 1}
)

// A value is the operand of one round of a loop: as many elements as the round handles. As a condition
// it is a mask of lanes instead: k for AVX-512, all bits of the lanes in v for others.
type value struct {
	v vector
	k reg.OpmaskVirtual
}

// param loads a parameter.
func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// sized returns a register of the given size in bytes.
func sized(bytes int) vector {
	switch bytes {
	case 64:
		return ZMM()
	case 32:
		return YMM()
	}
	return XMM()
}

// zero returns a vector of zeros.
func (m *isa) zero() vector {
	v := m.new()
	if m == avx512 {
		VPXORD(v, v, v)
	} else {
		VPXOR(v, v, v)
	}
	return v
}

// spread returns a vector whose elements, of the given size, are all the low bits of s.
func (m *isa) spread(s reg.GPVirtual, size int) vector {
	x, v := XMM(), m.new()
	VMOVQ(s, x)
	switch size {
	case 1:
		VPBROADCASTB(x, v)
	case 4:
		VPBROADCASTD(x, v)
	default:
		VPBROADCASTQ(x, v)
	}
	return v
}

// constant is spread of a number.
func (m *isa) constant(bits uint64, size int) vector {
	s := GP64()
	MOVQ(U64(bits), s)
	return m.spread(s, size)
}

// A tail is which elements of a vector exist.
type tail struct {
	mask  reg.OpmaskVirtual // for AVX-512
	ones  vector            // for others: all bits of those that exist
	count reg.GPVirtual     // for NEON: how many these are
}

// first is the tail of the first n elements, less than a vector has.
func (m *isa) first(n reg.GPVirtual, size int) tail {
	if m == avx512 {
		bits := GP64()
		MOVQ(I32(-1), bits)
		BZHIQ(n, bits, bits) // n ones
		k := K()
		KMOVQ(bits, k)
		return tail{mask: k}
	}
	// 32 bytes from n*size before the zeros of the window.
	at := GP64()
	LEAQ(window(), at)
	back := GP64()
	MOVQ(n, back)
	NEGQ(back)
	v, count := YMM(), GP64()
	VMOVDQU(Mem{Base: at, Index: back, Scale: uint8(size), Disp: 32}, v)
	if m == neons {
		MOVQ(n, count)
	}
	return tail{ones: v, count: count}
}

var windowIsWritten bool

// window is 32 bytes of ones and 32 of zeros.
func window() Mem {
	if !windowIsWritten {
		windowIsWritten = true
		GLOBL("window", attr.RODATA|attr.NOPTR)
		for i := range 8 {
			word := uint64(0)
			if i < 4 {
				word = ^word
			}
			DATA(8*i, U64(word))
		}
	}
	return NewDataAddr(Symbol{Name: "window", Static: true}, 0)
}

// load reads elements of the given size, one for each lane.
func load(from Mem, lanes, size int) vector {
	v := sized(lanes * size)
	switch lanes * size {
	case 64, 32, 16:
		VMOVUPS(from, v)
	case 8:
		VMOVQ(from, v)
	case 4:
		VMOVD(from, v)
	default:
		panic(fmt.Sprint("no vector of ", lanes*size, " bytes"))
	}
	return v
}

// store writes what load reads.
func store(v vector, to Mem, lanes, size int) {
	switch lanes * size {
	case 64:
		VMOVUPS(v.AsZ(), to)
	case 32:
		VMOVUPS(v.AsY(), to)
	case 16:
		VMOVUPS(v.AsX(), to)
	case 8:
		VMOVQ(v.AsX(), to)
	case 4:
		VMOVD(v.AsX(), to)
	default:
		panic(fmt.Sprint("no vector of ", lanes*size, " bytes"))
	}
}

// loadTail is load for the end of the data, where fewer elements are left than there are lanes; the
// other lanes become 0. Without AVX-512, elements have 4 bytes or 8.
func (m *isa) loadTail(from Mem, t tail, lanes, size int) vector {
	v := sized(lanes * size)
	switch {
	case m == neons:
		neon.LoadTail(from, t.count, size, v)
	case m == avx2 && size == 4:
		VPMASKMOVD(from, t.ones, v)
	case m == avx2:
		VPMASKMOVQ(from, t.ones, v)
	case size == 1:
		VMOVDQU8_Z(from, t.mask, v)
	case size == 2:
		VMOVDQU16_Z(from, t.mask, v)
	case size == 4:
		VMOVDQU32_Z(from, t.mask, v)
	default:
		VMOVDQU64_Z(from, t.mask, v)
	}
	return v
}

// storeTail writes what loadTail reads.
func (m *isa) storeTail(v vector, to Mem, t tail, lanes, size int) {
	var r reg.Register = v.AsX()
	switch lanes * size {
	case 64:
		r = v.AsZ()
	case 32:
		r = v.AsY()
	}
	switch {
	case m == neons:
		neon.StoreTail(r, t.count, size, to)
	case m == avx2 && size == 4:
		VPMASKMOVD(r, t.ones, to)
	case m == avx2:
		VPMASKMOVQ(r, t.ones, to)
	case size == 1:
		VMOVDQU8(r, t.mask, to)
	case size == 2:
		VMOVDQU16(r, t.mask, to)
	case size == 4:
		VMOVDQU32(r, t.mask, to)
	default:
		VMOVDQU64(r, t.mask, to)
	}
}

// loadSingle reads one element into the lowest lane of a register of the given size in bytes.
func loadSingle(from Mem, size, bytes int) vector {
	v := sized(bytes)
	switch size {
	case 1:
		s := GP32()
		MOVBLZX(from, s)
		VMOVD(s, v.AsX())
	case 2:
		s := GP32()
		MOVWLZX(from, s)
		VMOVD(s, v.AsX())
	case 4:
		VMOVD(from, v.AsX())
	default:
		VMOVQ(from, v.AsX())
	}
	return v
}

// storeSingle writes the lowest lane.
func storeSingle(v vector, to Mem, size int) {
	switch size {
	case 1:
		VPEXTRB(Imm(0), v.AsX(), to)
	case 2:
		VPEXTRW(Imm(0), v.AsX(), to)
	case 4:
		VMOVD(v.AsX(), to)
	default:
		VMOVQ(v.AsX(), to)
	}
}

// maskOf makes a mask from bools, for lanes of the given width. v holds the bools, one byte each; if
// wide is set, each one already fills a lane.
func (m *isa) maskOf(v vector, width int, wide bool) value {
	if m == avx512 {
		k := K()
		VPTESTMB(v, v, k)
		return value{k: k}
	}
	w, zero := YMM(), m.zero()
	if wide {
		w = v
	}
	switch width {
	case 1:
		VPCMPGTB(zero, v, w)
	case 4:
		if !wide {
			VPMOVZXBD(v, w)
		}
		VPCMPGTD(zero, w, w)
	default:
		if !wide {
			VPMOVZXBQ(v, w)
		}
		VPCMPGTQ(zero, w, w)
	}
	return value{v: w}
}

// boolsOf makes bools of a mask for so many lanes of the given width; ones is a vector of bytes that are 1.
func (m *isa) boolsOf(mask value, lanes, width int, ones vector) vector {
	if m == avx512 {
		v := sized(lanes)
		switch lanes {
		case 64:
			VMOVDQU8_Z(ones.AsZ(), mask.k, v)
		case 32:
			VMOVDQU8_Z(ones.AsY(), mask.k, v)
		default:
			VMOVDQU8_Z(ones.AsX(), mask.k, v)
		}
		return v
	}
	v, high := XMM(), XMM()
	VEXTRACTI128(Imm(1), mask.v, high)
	if width == 8 {
		VSHUFPS(Imm(0x88), high, mask.v.AsX(), v) // one half of each lane
		VPACKSSDW(v, v, v)
	} else {
		VPACKSSDW(high, mask.v.AsX(), v)
	}
	VPACKSSWB(v, v, v)
	VPAND(ones.AsX(), v, v)
	return v
}
