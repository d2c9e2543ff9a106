package neon

import (
	"fmt"
	"math/bits"
	"slices"
)

// A register is a virtual one until it is allocated.
type register int

// An instruction is a form with its operands, or a label or a comment, which have no form.
type instruction struct {
	*form
	registers []register // one for each slot
	number    int        // I of the form
	target    string     // of a jump
	label     string
	comment   string
	keep      bool // it does something besides writing registers
}

func (i *instruction) reads(f func(k int)) { i.each(func(s slot) bool { return s.reads }, f) }

// writes calls f for each register that is written and not read.
func (i *instruction) writes(f func(k int)) {
	i.each(func(s slot) bool { return s.writes && !s.reads }, f)
}

func (i *instruction) changes(f func(k int)) { i.each(func(s slot) bool { return s.writes }, f) }

func (i *instruction) each(is func(slot) bool, f func(k int)) {
	if i.form == nil {
		return
	}
	for k, s := range i.slots {
		if is(s) {
			f(k)
		}
	}
}

// move returns what i copies, and where to, if it copies a register.
func (i *instruction) move() (to, from register, ok bool) {
	switch {
	case i.form == nil:
	case i.text == moveText:
		return i.registers[0], i.registers[1], true
	case i.text == moveGeneralText:
		return i.registers[1], i.registers[0], true
	}
	return 0, 0, false
}

const (
	moveText        = "mov vD.16b, vN.16b"
	moveGeneralText = "MOVD xN, xD"
)

// A set is one of registers.
type set []uint64

func newSet(n int) set            { return make(set, (n+63)/64) }
func (s set) has(r register) bool { return s[r/64]>>(r%64)&1 != 0 }
func (s set) add(r register)      { s[r/64] |= 1 << (r % 64) }
func (s set) remove(r register)   { s[r/64] &^= 1 << (r % 64) }
func (s set) each(f func(r register)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(register(64*i + bits.TrailingZeros64(w)))
		}
	}
}

// A block is instructions that run one after the other, and the registers that are read later.
type block struct {
	begin, end int
	live       set // behind the block
}

// blocks splits the code and finds what is live behind each block.
func (f *function) blocks() []*block {
	var all []*block
	at := map[string]*block{}
	b := &block{}
	for i := range f.code {
		in := &f.code[i]
		if in.label != "" {
			if i > b.begin {
				b.end = i
				all, b = append(all, b), &block{begin: i}
			}
			at[in.label] = b
		}
		if in.target != "" || in.form != nil && in.text == "RET" {
			b.end = i + 1
			all, b = append(all, b), &block{begin: i + 1}
		}
	}
	if b.begin < len(f.code) {
		b.end = len(f.code)
		all = append(all, b)
	}
	before := make([]set, len(all)) // each block
	index := map[*block]int{}
	for i, b := range all {
		b.live, before[i], index[b] = newSet(len(f.isGeneral)), newSet(len(f.isGeneral)), i
	}
	for changed := true; changed; {
		changed = false
		for i := len(all) - 1; i >= 0; i-- {
			b := all[i]
			last := &f.code[b.end-1]
			if last.target != "" {
				b.live.join(before[index[at[last.target]]])
			}
			if last.form == nil || last.text != "RET" && last.text != "JMP" {
				b.live.join(before[i+1])
			}
			live := slices.Clone(b.live)
			for k := b.end - 1; k >= b.begin; k-- {
				live.step(&f.code[k])
			}
			changed = before[i].join(live) || changed
		}
	}
	return all
}

// join adds all of t to s and reports whether there was something new.
func (s set) join(t set) bool {
	changed := false
	for i := range s {
		changed = changed || t[i]&^s[i] != 0
		s[i] |= t[i]
	}
	return changed
}

// step makes what is live behind an instruction what is live before it.
func (s set) step(in *instruction) {
	in.writes(func(k int) { s.remove(in.registers[k]) })
	in.reads(func(k int) { s.add(in.registers[k]) })
}

// prune removes instructions whose results are not used.
func (f *function) prune() {
	for {
		var kept []instruction
		blocks := f.blocks()
		for i := len(blocks) - 1; i >= 0; i-- {
			b := blocks[i]
			live := b.live
			for k := b.end - 1; k >= b.begin; k-- {
				in := &f.code[k]
				isUsed := in.form == nil || in.keep
				in.changes(func(k int) { isUsed = isUsed || live.has(in.registers[k]) })
				if isUsed {
					live.step(in)
					kept = append(kept, *in)
				}
			}
		}
		slices.Reverse(kept)
		done := len(kept) == len(f.code)
		if f.code = kept; done {
			return
		}
	}
}

// split gives a register that is written several times in a block another number for each time, save the last if
// it is read in other blocks. So values that have nothing to do with each other can be in different registers.
func (f *function) split() {
	for _, b := range f.blocks() {
		last := map[register]int{}
		for k := b.begin; k < b.end; k++ {
			in := &f.code[k]
			in.writes(func(s int) { last[in.registers[s]] = k })
		}
		now := map[register]register{}
		for k := b.begin; k < b.end; k++ {
			in := &f.code[k]
			old := slices.Clone(in.registers)
			in.reads(func(s int) {
				if r, ok := now[old[s]]; ok {
					in.registers[s] = r
				}
			})
			in.writes(func(s int) {
				r := old[s]
				if delete(now, r); last[r] == k && b.live.has(r) {
					return
				}
				now[r] = f.register(f.isGeneral[r])
				in.registers[s] = now[r]
			})
		}
	}
}

// A graph says which registers can't be the same one.
type graph struct {
	near   []set
	leader []register // of the registers that are made one; see find
}

func (g *graph) find(r register) register {
	for g.leader[r] != r {
		g.leader[r] = g.leader[g.leader[r]]
		r = g.leader[r]
	}
	return r
}

func (f *function) interference() *graph {
	n := len(f.isGeneral)
	g := &graph{near: make([]set, n), leader: make([]register, n)}
	for r := range g.near {
		g.near[r], g.leader[r] = newSet(n), register(r)
	}
	for _, b := range f.blocks() {
		live := b.live
		for k := b.end - 1; k >= b.begin; k-- {
			in := &f.code[k]
			in.changes(func(s int) { live.add(in.registers[s]) }) // even if it is not read
			_, from, isMove := in.move()
			in.changes(func(s int) {
				r := in.registers[s]
				live.each(func(other register) {
					if other != r && f.isGeneral[other] == f.isGeneral[r] && !(isMove && other == from) {
						g.near[r].add(other)
						g.near[other].add(r)
					}
				})
			})
			live.step(in)
		}
	}
	return g
}

// coalesce makes one register of two where one is a copy of the other.
func (f *function) coalesce(g *graph) {
	for i := range f.code {
		to, from, ok := f.code[i].move()
		if to, from = g.find(to), g.find(from); !ok || to == from || g.near[to].has(from) {
			continue
		}
		g.leader[from] = to
		g.near[from].each(func(r register) {
			g.near[r].remove(from)
			g.near[r].add(to)
			g.near[to].add(r)
		})
		g.near[from] = nil
	}
}

// general are the general registers that a function may use. Go has a use for the others, or systems have.
var general = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25}

// allocate replaces virtual registers by those of the machine.
func (f *function) allocate() error {
	g := f.interference()
	f.coalesce(g)
	numbers := f.color(g)
	if numbers == nil { // some copies have to stay
		g = f.interference()
		numbers = f.color(g)
	}
	if numbers == nil {
		return fmt.Errorf("%s needs more registers than there are", f.name)
	}
	kept := f.code[:0]
	for _, in := range f.code {
		in.registers = slices.Clone(in.registers)
		for k, r := range in.registers {
			in.registers[k] = register(numbers[g.find(r)])
		}
		if to, from, ok := in.move(); !ok || to != from {
			kept = append(kept, in)
		}
	}
	f.code = kept
	return nil
}

// color returns a number for each register of the graph: it takes one after the other out, those with few neighbours
// first, and gives them numbers in the opposite order. It returns nil if there are too few.
func (f *function) color(g *graph) []int {
	var left []register
	degree := make([]int, len(g.near))
	for r := range register(len(g.near)) {
		if g.leader[r] != r {
			continue
		}
		left = append(left, r)
		g.near[r].each(func(register) { degree[r]++ })
	}
	most := func(r register) int {
		if f.isGeneral[r] {
			return len(general)
		}
		return 32
	}
	removed := make([]bool, len(g.near))
	var order []register
	for len(left) > 0 {
		k := slices.IndexFunc(left, func(r register) bool { return degree[r] < most(r) })
		if k < 0 { // some neighbours may get the same number: try
			k = 0
			for i, r := range left {
				if degree[r] > degree[left[k]] {
					k = i
				}
			}
		}
		r := left[k]
		left = slices.Delete(left, k, k+1)
		removed[r] = true
		order = append(order, r)
		g.near[r].each(func(other register) {
			if !removed[other] {
				degree[other]--
			}
		})
	}
	number := make([]int, len(g.near))
	for r := range number {
		number[r] = -1
	}
	for _, r := range slices.Backward(order) {
		var taken uint64
		g.near[r].each(func(other register) {
			if n := number[other]; n >= 0 {
				taken |= 1 << n
			}
		})
		for k := range most(r) {
			n := k
			if f.isGeneral[r] {
				n = general[k]
			}
			if taken>>n&1 == 0 {
				number[r] = n
				break
			}
		}
		if number[r] < 0 {
			return nil
		}
	}
	return number
}
