package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A vector is a virtual register of either size.
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
	isas   = []*isa{avx512, avx2}
)

// param loads a parameter.
func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// spread returns a vector whose elements, of the given size, are all the low bits of s.
func (m *isa) spread(s reg.GPVirtual, size int) vector {
	x, v := XMM(), m.new()
	MOVQ(s, x)
	if size == 4 {
		VPBROADCASTD(x, v)
	} else {
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
	mask reg.OpmaskVirtual // for AVX-512
	ones vector            // for AVX2: all bits of those that exist
}

// first is the tail of the first n elements, less than a vector has.
func (m *isa) first(n reg.GPVirtual, size int) tail {
	if m == avx512 {
		bits := GP64()
		MOVQ(I32(-1), bits)
		BZHIQ(n, bits, bits) // n ones
		k := K()
		KMOVW(bits.As32(), k)
		return tail{mask: k}
	}
	// 32 bytes from n*size before the zeros of the window.
	at := GP64()
	LEAQ(window(), at)
	back := GP64()
	MOVQ(n, back)
	NEGQ(back)
	v := YMM()
	VMOVDQU(Mem{Base: at, Index: back, Scale: uint8(size), Disp: 32}, v)
	return tail{ones: v}
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

// loadTail reads the elements that exist; the others are 0.
func (m *isa) loadTail(from Mem, t tail, size int) vector {
	v := m.new()
	switch {
	case m == avx2 && size == 4:
		VPMASKMOVD(from, t.ones, v)
	case m == avx2:
		VPMASKMOVQ(from, t.ones, v)
	case size == 4:
		VMOVDQU32_Z(from, t.mask, v)
	default:
		VMOVDQU64_Z(from, t.mask, v)
	}
	return v
}

// storeTail writes the elements that exist.
func (m *isa) storeTail(v vector, to Mem, t tail, size int) {
	switch {
	case m == avx2 && size == 4:
		VPMASKMOVD(v, t.ones, to)
	case m == avx2:
		VPMASKMOVQ(v, t.ones, to)
	case size == 4:
		VMOVDQU32(v, t.mask, to)
	default:
		VMOVDQU64(v, t.mask, to)
	}
}

// load reads a vector.
func (m *isa) load(from Mem) vector {
	v := m.new()
	VMOVUPS(from, v)
	return v
}
