package load

import (
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"strings"
	"testing"
)

// TestShipped: every function of modules.json is one that its module declares, and its words fit
// its type. Who is given a function or a channel has other goroutines take part, or calls it; who
// is given what shows no type makes text of it.
func TestShipped(t *testing.T) {
	table, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]*ast.FuncType)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, sig, _ := strings.Cut(strings.TrimSpace(line), " ")
		e, err := parser.ParseExpr("func" + sig)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		declared[name] = e.(*ast.FuncType)
		if _, ok := table[name]; !ok {
			t.Errorf("modules.json says nothing of %s", name)
		}
	}
	for name, e := range table {
		sig := declared[name]
		if sig == nil {
			t.Errorf("%s is not among the functions in testdata/modules.txt", name)
			continue
		}
		for _, param := range sig.Params.List {
			ast.Inspect(param.Type, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncType, *ast.ChanType:
					if !e.Input {
						t.Errorf("%s: what happens to %s?", name, types.ExprString(param.Type))
					}
					return false
				case *ast.Ident:
					if (n.Name == "any" || n.Name == "error" || n.Name == "Stringer") && !e.Formats {
						t.Errorf("%s makes no text of %s", name, types.ExprString(param.Type))
					}
				}
				return true
			})
		}
	}
}
