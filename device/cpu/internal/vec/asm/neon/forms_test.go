package neon

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestForms compares the word of each form, with several registers and numbers, with that of LLVM's assembler.
func TestForms(t *testing.T) {
	if _, err := exec.LookPath("llvm-mc"); err != nil {
		t.Skip("no llvm-mc here, which is what words are compared with")
	}
	var texts []string
	var words []uint32
	for _, key := range slices.Sorted(maps.Keys(forms)) {
		f := forms[key]
		numbers := f.some
		if f.number == nil {
			numbers = []int{0}
		}
		for _, i := range numbers {
			for _, first := range []int{0, 1, 7, 16, 29} {
				registers := make([]int, len(f.slots))
				for k := range registers {
					if registers[k] = (first + 9*k) % 32; f.slots[k].isGeneral {
						registers[k] = (first + 9*k) % 31
					}
				}
				texts = append(texts, f.format(registers, i))
				words = append(words, f.encode(registers, i))
			}
		}
	}
	cmd := exec.Command("llvm-mc", "-triple=aarch64", "-mattr=+neon", "-show-encoding")
	cmd.Stdin = strings.NewReader(strings.Join(texts, "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	encodings := regexp.MustCompile(`encoding: \[(.*)\]`).FindAllStringSubmatch(string(out), -1)
	if len(encodings) != len(texts) {
		t.Fatalf("%d encodings of %d instructions", len(encodings), len(texts))
	}
	for i, m := range encodings {
		b, err := hex.DecodeString(strings.ReplaceAll(strings.ReplaceAll(m[1], "0x", ""), ",", ""))
		if err != nil || len(b) != 4 {
			t.Fatalf("%s: %v", m[0], err)
		}
		if want := binary.LittleEndian.Uint32(b); words[i] != want {
			t.Errorf("%s: %s, want %#x", texts[i], fmt.Sprintf("%#x", words[i]), want)
		}
	}
}
