package neon

import (
	"fmt"
	"regexp"
	"strings"
)

// A form is an instruction whose operands have no numbers yet. Its text is that of Arm's manual, with a letter for
// the number of each register, by what becomes of it and where the number stands in the word:
//
//	D  written, bits 0 to 4        N  read, bits 5 to 9
//	T  read and written, likewise  M  read, bits 16 to 20
//	S  read, likewise              E  written, bits 10 to 14
//	                               F  read, likewise
//
// and I for a number. Go's assembler lacks most instructions for vectors, so these are written as words. A form that
// begins with a capital is one of Go's own syntax, for general registers, which needs no word.
type form struct {
	text   string
	word   uint32             // with 0 for all that varies
	number func(i int) uint32 // the bits of I
	some   []int              // numbers that I may be, for tests
	slots  []slot
}

// A slot is where a form has a register.
type slot struct {
	isGeneral     bool
	shift         int
	reads, writes bool
}

func (f *form) isGo() bool { return f.text[0] >= 'A' && f.text[0] <= 'Z' }

// inText finds the registers in the text of a form: the kind and the letter of each.
var inText = regexp.MustCompile(`\b([vqdshbxw])([DTSNMEF])\b`)

func newForm(text string, word uint32) *form {
	f := &form{text: text, word: word}
	for _, m := range inText.FindAllStringSubmatch(text, -1) {
		f.slots = append(f.slots, slot{
			isGeneral: strings.Contains("xw", m[1]),
			shift:     map[string]int{"D": 0, "T": 0, "S": 0, "N": 5, "M": 16, "E": 10, "F": 10}[m[2]],
			reads:     !strings.Contains("DE", m[2]),
			writes:    strings.Contains("DTE", m[2]),
		})
	}
	return f
}

// encode is the word with the numbers of registers, one for each slot, and with i for I.
func (f *form) encode(registers []int, i int) uint32 {
	w := f.word
	for k, s := range f.slots {
		w |= uint32(registers[k]) << s.shift
	}
	if f.text == moveText { // is the disjunction of a vector with itself
		w |= uint32(registers[1]) << 16
	}
	if f.number != nil {
		w |= f.number(i)
	}
	return w
}

// format is the text with numbers.
func (f *form) format(registers []int, i int) string {
	k := -1
	text := inText.ReplaceAllStringFunc(f.text, func(s string) string {
		k++
		if f.isGo() {
			return fmt.Sprintf("R%d", registers[k])
		}
		return fmt.Sprintf("%c%d", s[0], registers[k])
	})
	return strings.Replace(text, "#I", fmt.Sprintf("#%d", i), 1)
}

// forms are those of words, by their texts.
var forms = map[string]*form{}

func add(word uint32, text string, a ...any) *form {
	f := newForm(fmt.Sprintf(text, a...), word)
	forms[f.text] = f
	return f
}

// immediate tells how the number I of a form is encoded: divided by unit, in so many bits from bit from on. The numbers
// in some are examples, for tests.
func (f *form) immediate(unit, bits, from int, some ...int) {
	f.number = func(i int) uint32 {
		if i%unit != 0 {
			panic(fmt.Sprintf("%s: %d is no multiple of %d", f.text, i, unit))
		}
		return uint32(i/unit) & (1<<bits - 1) << from
	}
	f.some = some
}

// texts of forms for vectors of one arrangement, such as 4s, which is 4 words.
func three(name, arrangement string) string {
	return fmt.Sprintf("%s vD.%[2]s, vN.%[2]s, vM.%[2]s", name, arrangement)
}
func tied(name, arrangement string) string {
	return fmt.Sprintf("%s vT.%[2]s, vN.%[2]s, vM.%[2]s", name, arrangement)
}
func two(name, arrangement string) string {
	return fmt.Sprintf("%s vD.%[2]s, vN.%[2]s", name, arrangement)
}

func init() {
	// Floating-point numbers: bit 22 says that they have 64 bits.
	for i, a := range []string{"4s", "2d"} {
		wide := uint32(i) << 22
		for name, word := range map[string]uint32{
			"fadd": 0x4e20d400, "fsub": 0x4ea0d400, "fmul": 0x6e20dc00, "fdiv": 0x6e20fc00, "fmax": 0x4e20f400, "fmin": 0x4ea0f400,
			"fcmeq": 0x4e20e400, "fcmge": 0x6e20e400, "fcmgt": 0x6ea0e400,
		} {
			add(word|wide, "%s", three(name, a))
		}
		for name, word := range map[string]uint32{
			"fsqrt": 0x6ea1f800, "fneg": 0x6ea0f800, "frintn": 0x4e218800, "frintm": 0x4e219800, "frintp": 0x4ea18800,
			"scvtf": 0x4e21d800, "fcvtzs": 0x4ea1b800,
		} {
			add(word|wide, "%s", two(name, a))
		}
		add(0x4e20cc00|wide, "%s", tied("fmla", a))
		add(0x4ea0cc00|wide, "%s", tied("fmls", a))
		add(0x4f801000|wide, "fmla vT.%s, vN.%[1]s, vM.%c[0]", a, a[1])
		add(0x4f805000|wide, "fmls vT.%s, vN.%[1]s, vM.%c[0]", a, a[1])
	}
	// Integers: bits 22 and 23 are the logarithm of the bytes of each.
	for i, a := range []string{"16b", "8h", "4s", "2d"} {
		size, bits := uint32(i)<<22, 8<<i
		for name, word := range map[string]uint32{
			"add": 0x4e208400, "sub": 0x6e208400, "cmeq": 0x6e208c00, "cmgt": 0x4e203400,
			"zip1": 0x4e003800, "zip2": 0x4e007800, "uzp1": 0x4e001800,
		} {
			add(word|size, "%s", three(name, a))
		}
		add(0x4e20a800|size, "cmlt vD.%s, vN.%[1]s, #0", a)
		add(0x4e000400|1<<(16+i), "dup vD.%s, vN.%c[0]", a, a[len(a)-1])
		// The bits of a shift stand above those of the lane's size: bits + I to the left, 2*bits - I to the right.
		left := add(0x4f005400, "shl vD.%s, vN.%[1]s, #I", a)
		left.number, left.some = func(i int) uint32 { return uint32(bits+i) << 16 }, []int{0, 1, bits - 1}
		for name, word := range map[string]uint32{"ushr": 0x6f000400, "sshr": 0x4f000400} {
			right := add(word, "%s vD.%s, vN.%[2]s, #I", name, a)
			right.number, right.some = func(i int) uint32 { return uint32(2*bits-i) << 16 }, []int{1, 3, bits}
		}
	}
	add(0x4ee0b800, "%s", two("abs", "2d"))
	add(0x6ea0a400, "%s", three("umaxp", "4s"))
	insert := add(0x6f005400, "sli vT.2d, vN.2d, #I")
	insert.number, insert.some = func(i int) uint32 { return uint32(64+i) << 16 }, []int{0, 32, 63}

	// All bits alike.
	for name, word := range map[string]uint32{"and": 0x4e201c00, "bic": 0x4e601c00, "orr": 0x4ea01c00, "eor": 0x6e201c00} {
		add(word, "%s", three(name, "16b"))
	}
	for name, word := range map[string]uint32{"bsl": 0x6e601c00, "bit": 0x6ea01c00, "bif": 0x6ee01c00} {
		add(word, "%s", tied(name, "16b"))
	}
	add(0x6e205800, "%s", two("not", "16b"))
	add(0x4ea01c00, moveText)
	add(0x6f00e400, "movi vD.2d, #0000000000000000")
	add(0x6f00e5e0, "movi vD.2d, #0x000000ffffffff")
	add(0x6f07e7e0, "movi vD.2d, #0xffffffffffffffff")

	// Numbers that become wider or narrower; one with a 2 is about the upper half of the narrow vector.
	for i, n := range []struct{ narrow, all, wide string }{{"8b", "16b", "8h"}, {"4h", "8h", "4s"}, {"2s", "4s", "2d"}} {
		size, bits := uint32(i)<<22, uint32(8)<<i<<16
		for name, word := range map[string]uint32{"ushll": 0x2f00a400, "sshll": 0x0f00a400} {
			add(word|bits, "%s vD.%s, vN.%s, #0", name, n.wide, n.narrow)
			add(word|bits|1<<30, "%s2 vD.%s, vN.%s, #0", name, n.wide, n.all)
		}
		for name, word := range map[string]uint32{"xtn": 0x0e212800, "sqxtn": 0x0e214800, "sqxtun": 0x2e212800} {
			add(word|size, "%s vD.%s, vN.%s", name, n.narrow, n.wide)
			add(word|size|1<<30, "%s2 vT.%s, vN.%s", name, n.all, n.wide)
		}
		if i == 0 {
			continue
		}
		wide := uint32(i-1) << 22
		add(0x0e217800|wide, "fcvtl vD.%s, vN.%s", n.wide, n.narrow)
		add(0x4e217800|wide, "fcvtl2 vD.%s, vN.%s", n.wide, n.all)
		add(0x0e216800|wide, "fcvtn vD.%s, vN.%s", n.narrow, n.wide)
		add(0x4e216800|wide, "fcvtn2 vT.%s, vN.%s", n.all, n.wide)
	}
	add(0x2ea0c000, "umull vD.2d, vN.2s, vM.2s")
	add(0x6ea0c000, "umull2 vD.2d, vN.4s, vM.4s")
	add(0x2f80a000, "umull vD.2d, vN.2s, vM.s[0]")
	add(0x6f80a000, "umull2 vD.2d, vN.4s, vM.s[0]")

	// Lanes.
	add(0x4e0c0400, "dup vD.4s, vN.s[1]")
	add(0x6e004000, "ext vD.16b, vN.16b, vM.16b, #8")
	add(0x0e31b800, "addv bD, vN.8b")
	add(0x0e71b800, "addv hD, vN.4h")
	add(0x1e270000, "fmov sD, wN")
	add(0x1e260000, "fmov wD, sN")
	add(0x9e670000, "fmov dD, xN")
	add(0x9e660000, "fmov xD, dN")

	// Memory: a vector, or one of its first lanes, at an offset that is a multiple of its size, any small offset, or a
	// register, which may be multiplied by the size.
	for letter, l := range map[string]struct {
		size int
		word uint32 // of a store
	}{"b": {1, 0x3c000000}, "h": {2, 0x7c000000}, "s": {4, 0xbc000000}, "d": {8, 0xfc000000}, "q": {16, 0x3c800000}} {
		for _, op := range []struct {
			name, at string
			bits     uint32
		}{{"ldr", "D", 1 << 22}, {"str", "S", 0}} {
			word := l.word | op.bits
			add(word|1<<24, "%s %s%s, [xN, #I]", op.name, letter, op.at).immediate(l.size, 12, 10, l.size, 5*l.size, 4095*l.size)
			add(word, "%s %s%s, [xN, #I]", strings.Replace(op.name, "r", "ur", 1), letter, op.at).immediate(1, 9, 12, -256, -1, 1, 255)
			add(word|0x206800, "%s %s%s, [xN, xM]", op.name, letter, op.at)
			if l.size > 1 && l.size < 16 {
				add(word|0x207800, "%s %s%s, [xN, xM, lsl #%d]", op.name, letter, op.at, map[int]int{2: 1, 4: 2, 8: 3}[l.size])
			}
		}
	}
	add(0xad400000, "ldp qD, qE, [xN, #I]").immediate(16, 7, 15, -1024, -16, 16, 1008)
	add(0xad000000, "stp qS, qF, [xN, #I]").immediate(16, 7, 15, -1024, -16, 16, 1008)
	add(0x4d40c800, "ld1r { vD.4s }, [xN]")
	add(0x4d40cc00, "ld1r { vD.2d }, [xN]")
	for i := range 4 {
		lane := uint32(i>>1)<<30 | uint32(i&1)<<12
		add(0x0d408000|lane, "ld1 { vT.s }[%d], [xN]", i)
		add(0x0d008000|lane, "st1 { vS.s }[%d], [xN]", i)
	}
	for i := range 2 {
		add(0x0d408400|uint32(i)<<30, "ld1 { vT.d }[%d], [xN]", i)
	}
}
