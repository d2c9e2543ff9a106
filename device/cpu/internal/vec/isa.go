package vec

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// An ISA is what loops are written for.
type ISA uint8

const (
	Go     ISA = iota // the twins, on any machine
	NEON              // of arm64, which all of its processors have
	AVX2              // with FMA, BMI1, BMI2 and F16C
	AVX512            // F, DQ, BW and VL, with what AVX2 has
	isas
)

var names = [isas]string{"go", "neon", "avx2", "avx512"}

// known are the ISAs of this architecture, the best one first.
var known = append(map[string][]ISA{"amd64": {AVX512, AVX2}, "arm64": {NEON}}[runtime.GOARCH], Go)

// String is the name that ASYNCGEN_ISA has for it.
func (a ISA) String() string { return names[a] }

// current is the ISA in use.
var current atomic.Uint32

// mistake is what is wrong with ASYNCGEN_ISA.
var mistake error

func init() {
	a, err := parse(os.Getenv("ASYNCGEN_ISA"))
	mistake = err
	Use(a)
}

// parse returns the ISA of the given name, or the best that the machine has where there is none.
func parse(name string) (ISA, error) {
	if name == "" {
		return Machine(), nil
	}
	for _, a := range known {
		if a.String() == name {
			return a, nil
		}
	}
	return Machine(), fmt.Errorf("ASYNCGEN_ISA=%s: want %s", name, choices())
}

// choices are the names that ASYNCGEN_ISA may have here, as a text.
func choices() string {
	text := known[len(known)-1].String()
	var others []string
	for _, a := range known[:len(known)-1] {
		others = append(others, a.String())
	}
	if len(others) > 0 {
		text = strings.Join(others, ", ") + " or " + text
	}
	return text
}

// Mistake is an error if ASYNCGEN_ISA names no ISA. Loops work nevertheless.
func Mistake() error { return mistake }

// Machine is the best ISA that this machine has and this build has loops for.
func Machine() ISA { return machine }

// Has are the ISAs that this machine has and this build has loops for, the best one last.
func Has() []ISA {
	var has []ISA
	for _, a := range slices.Backward(known) {
		if a <= machine {
			has = append(has, a)
		}
	}
	return has
}

// Current is the ISA whose loops the functions of this package choose: what ASYNCGEN_ISA says,
// the next one below that the machine has, or else its best.
func Current() ISA { return ISA(current.Load()) }

// Use changes Current, for tests, to a, or to the next one below that the machine has. What was chosen before stays as
// it was.
func Use(a ISA) {
	for !slices.Contains(known, min(a, machine)) {
		a--
	}
	current.Store(uint32(min(a, machine)))
}

// A table holds what there is once for each ISA and key. It is filled when the package is initialised.
type table[K comparable, V any] [isas]map[K]V

func (t *table[K, V]) set(a ISA, key K, v V) {
	if t[a] == nil {
		t[a] = map[K]V{}
	}
	t[a][key] = v
}

// get returns what the current ISA has for the key, or the next one below it that has something.
func (t *table[K, V]) get(key K) (V, bool) {
	for a := Current(); ; a-- {
		if v, ok := t[a][key]; ok || a == 0 {
			return v, ok
		}
	}
}

// A single is a table with one thing for each ISA.
type single[V any] [isas]*V

func (s *single[V]) set(a ISA, _ int, v V) { s[a] = &v }

// get returns what the current ISA has, or the next one below it that has something, or nil.
func (s *single[V]) get() *V {
	for a := Current(); ; a-- {
		if s[a] != nil || a == 0 {
			return s[a]
		}
	}
}
