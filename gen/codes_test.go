package gen_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
)

// imports are the packages that examples use, by name.
var imports = map[string]string{
	"asyncrt": "github.com/asyncgen/asyncgen/runtime", "context": "context", "fmt": "fmt", "log": "log", "rand": "math/rand/v2", "time": "time",
	"nn": "github.com/asyncgen/asyncgen/runtime/nn", "optim": "github.com/asyncgen/asyncgen/runtime/optim", "tensor": "github.com/asyncgen/asyncgen/runtime/tensor",
}

// exampleFile makes a file of an example; the function F is marked.
func exampleFile(code string) []byte {
	var b strings.Builder
	b.WriteString("package p\n\nimport (\n")
	for name, path := range imports {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(code) {
			fmt.Fprintf(&b, "\t%s %q\n", name, path)
		}
	}
	b.WriteString(")\n")
	if !strings.Contains(code, "//asyncgen:kernel") {
		code = strings.Replace(code, "\nfunc F(", "\n//asyncgen:kernel\nfunc F(", 1)
	}
	b.WriteString(code)
	return []byte(b.String())
}

// TestExplain: every code in the source has an explanation; the first example
// gets the code and the second does not, or is what is generated.
func TestExplain(t *testing.T) {
	source, err := os.ReadFile("internal/plan/remark.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, m := range regexp.MustCompile(`Code = "(AG\d+)"`).FindAllSubmatch(source, -1) {
		codes = append(codes, string(m[1]))
	}
	if len(codes) < 20 || !slices.IsSorted(codes) {
		t.Fatalf("codes of remark.go: %v", codes)
	}
	dir := newModule(t)
	for _, code := range codes {
		e, ok := gen.Explain(code)
		if !ok {
			t.Fatalf("%s has no explanation", code)
		}
		if isRefusal := code >= "AG200" && code < "AG300" || code >= "AG900"; isRefusal != (e.Code.Class() != "") {
			t.Errorf("%s has the class %q", code, e.Code.Class())
		}
		if page := e.String(); !strings.HasPrefix(page, code+": "+e.Title+"\n\n") || strings.Contains(page, "\n\n\n") {
			t.Errorf("page of %s:\n%s", code, page)
		}
		if e.Wrong == "" {
			continue
		}
		write(t, filepath.Join(dir, code, "wrong", "p.go"), exampleFile(e.Wrong))
		if code >= "AG200" {
			write(t, filepath.Join(dir, code, "right", "p.go"), exampleFile(e.Right))
		}
	}
	if _, ok := gen.Explain("AG000"); ok {
		t.Error("AG000 is explained")
	}
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, r := range result.Remarks {
		folder := filepath.Dir(r.Pos.Filename)
		got[folder] = append(got[folder], string(r.Code))
	}
	for _, code := range codes {
		e, _ := gen.Explain(code)
		wrong, right := filepath.Join(dir, code, "wrong"), filepath.Join(dir, code, "right")
		if e.Wrong != "" && !slices.Contains(got[wrong], code) {
			t.Errorf("the first example of %s gets %v", code, got[wrong])
		}
		switch {
		case e.Wrong == "":
		case code >= "AG200":
			if !slices.Contains(got[right], "AG116") {
				t.Errorf("the second example of %s is not rewritten: %v", code, got[right])
			}
		default:
			i := slices.IndexFunc(result.Files, func(f gen.File) bool { return filepath.Dir(f.Path) == wrong })
			if i < 0 || slices.ContainsFunc(strings.SplitAfter(strings.TrimSpace(e.Right), "\n}\n"), func(decl string) bool {
				return !strings.Contains(string(result.Files[i].Text), strings.TrimSpace(decl))
			}) {
				t.Errorf("the second example of %s is not what is generated:\n%s", code, result.Files[i].Text)
			}
		}
	}
}
