package vec

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// eachISA runs f as a subtest for each ISA that the machine has.
func eachISA(t *testing.T, f func(t *testing.T)) {
	old := Current()
	defer Use(old)
	for _, a := range Has() {
		t.Run(a.String(), func(t *testing.T) {
			Use(a)
			f(t)
		})
	}
}

func TestParse(t *testing.T) {
	want := map[string]ISA{"": Machine()}
	for _, a := range known {
		want[a.String()] = a
	}
	for name, want := range want {
		got, err := parse(name)
		if err != nil || got != want {
			t.Errorf("parse(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	message := map[string]string{"amd64": "want avx512, avx2 or go", "arm64": "want neon or go"}[runtime.GOARCH]
	if _, err := parse("AVX3"); err == nil || !strings.Contains(err.Error(), "ASYNCGEN_ISA=AVX3: "+message) {
		t.Errorf("parse(AVX3): error %v", err)
	}
}

// An ISA that the machine lacks is the next one below it.
func TestUse(t *testing.T) {
	old := Current()
	defer Use(old)
	for a := range isas {
		Use(a)
		want := Go
		for _, has := range Has() {
			if has <= a {
				want = has
			}
		}
		if Current() != want {
			t.Errorf("after Use(%v): %v, want %v", a, Current(), want)
		}
	}
}

// What an ISA has no entry for comes from the next one below.
func TestTable(t *testing.T) {
	old := Current()
	defer Use(old)
	var tab table[string, int]
	tab.set(Go, "all", 1)
	tab.set(AVX2, "two", 2)
	tab.set(AVX512, "all", 3)
	for _, a := range Has() {
		Use(a)
		want := map[string]int{"all": 1, "two": 0}
		if a >= AVX2 {
			want["two"] = 2
		}
		if a >= AVX512 {
			want["all"] = 3
		}
		for key, v := range want {
			if got, ok := tab.get(key); got != v || ok != (v != 0) {
				t.Errorf("%v: get(%q) = %d, %v, want %d", a, key, got, ok, v)
			}
		}
	}
}

// The assembly needs nothing that Machine does not look for. Instructions of SSE would work, but
// are slow between those of AVX.
func TestRequirements(t *testing.T) {
	files, err := filepath.Glob("z*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	common := []string{"AVX", "AVX2", "BMI", "BMI2", "FMA3", "F16C", "CMOV", "MMX+", "CPUID"} // MMX+: fences
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var needs []string // of the function that comes
		for line := range strings.Lines(string(text)) {
			if list, ok := strings.CutPrefix(line, "// Requires: "); ok {
				needs = strings.Split(strings.TrimSpace(list), ", ")
			}
			rest, ok := strings.CutPrefix(line, "TEXT ·")
			if !ok {
				continue
			}
			name, _, _ := strings.Cut(rest, "(")
			for _, need := range needs {
				isOf512 := slices.Contains([]string{"AVX512F", "AVX512DQ", "AVX512BW", "AVX512VL"}, need)
				if !slices.Contains(common, need) && !(isOf512 && strings.Contains(name, "AVX512")) {
					t.Errorf("%s: %s requires %s", file, name, need)
				}
			}
			needs = nil
		}
	}
}

// TestAVX2HasSixteenRegisters: avo takes registers that only AVX-512 has where it runs out of others.
func TestAVX2HasSixteenRegisters(t *testing.T) {
	more := regexp.MustCompile(`\b[XYZ](1[6-9]|2[0-9]|3[01])\b|\bZ[0-9]+\b|\bK[0-7]\b`)
	files, err := filepath.Glob("z*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, reported := "", false
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "TEXT ·"); ok {
				name, _, _ = strings.Cut(rest, "(")
				reported = false
			} else if !reported && !strings.HasPrefix(line, "//") && !strings.Contains(name, "AVX512") && more.MatchString(line) {
				t.Errorf("%s: %s: %s", file, name, strings.TrimSpace(line))
				reported = true
			}
		}
	}
}
