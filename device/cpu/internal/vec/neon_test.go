package vec

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWords compares every word in the assembly for arm64 with what LLVM's assembler makes of the comment beside it.
func TestWords(t *testing.T) {
	if _, err := exec.LookPath("llvm-mc"); err != nil {
		t.Skip("no llvm-mc here, which is what words are compared with")
	}
	files, err := filepath.Glob("z*_arm64.s")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	isWord := regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.*)$`)
	words := map[string]string{} // by the text
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range isWord.FindAllStringSubmatch(string(text), -1) {
			if other, ok := words[m[2]]; ok && other != m[1] {
				t.Errorf("%s: %s is %s and %s", file, m[2], m[1], other)
			}
			words[m[2]] = m[1]
		}
	}
	var texts []string
	for text := range words {
		texts = append(texts, text)
	}
	cmd := exec.Command("llvm-mc", "-triple=aarch64", "-mattr=+neon", "-show-encoding")
	cmd.Stdin = strings.NewReader(strings.Join(texts, "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	encoding := regexp.MustCompile(`encoding: \[0x(..),0x(..),0x(..),0x(..)\]`)
	i := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		m := encoding.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if want := fmt.Sprint(m[4], m[3], m[2], m[1]); i < len(texts) && words[texts[i]] != want {
			t.Errorf("%s is %s, want %s", texts[i], words[texts[i]], want)
		}
		i++
	}
	if i != len(texts) || i < 1000 {
		t.Errorf("%d encodings of %d instructions", i, len(texts))
	}
}
