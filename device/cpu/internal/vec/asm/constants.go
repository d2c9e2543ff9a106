package main

import (
	"math"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// A pool is the constants of a file, each once, that instructions read from memory.
type pool struct {
	name   string
	size   int // of a constant
	values []uint64
}

var (
	words = &pool{name: "philoxWords", size: 4}
	longs = &pool{name: "philoxLongs", size: 8}
)

// at is where the values lie, one after the other.
func (p *pool) at(values ...uint64) Mem {
	i := 0
	for i+len(values) <= len(p.values) && !slices.Equal(p.values[i:i+len(values)], values) {
		i++
	}
	if i+len(values) > len(p.values) {
		i = len(p.values)
		p.values = append(p.values, values...)
	}
	return NewDataAddr(Symbol{Name: p.name, Static: true}, i*p.size)
}

func (p *pool) float32(c float32) Mem { return p.at(uint64(math.Float32bits(c))) }
func (p *pool) float64(c float64) Mem { return p.at(math.Float64bits(c)) }

// write writes the constants behind the functions that use them.
func (p *pool) write() {
	GLOBL(p.name, attr.RODATA|attr.NOPTR)
	for i, v := range p.values {
		if p.size == 4 {
			DATA(4*i, U32(uint32(v)))
		} else {
			DATA(8*i, U64(v))
		}
	}
}
