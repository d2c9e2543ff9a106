package tensorapi_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/types/typeutil"
)

func ExampleProfile_Lookup() {
	pkg := types.NewPackage("github.com/asyncgen/asyncgen/runtime", "asyncrt")
	fn := types.NewFunc(token.NoPos, pkg, "WaitAll", types.NewSignatureType(nil, nil, nil, nil, nil, false))
	f, ok := tensorapi.Ours().Lookup(fn)
	fmt.Println(ok, f.Kind, f.Waits(), f.Enqueues())
	// Output: true waitall true false
}

func TestKindNames(t *testing.T) {
	seen := make(map[string]bool)
	for k := tensorapi.Pure; k <= tensorapi.Call; k++ {
		if got, ok := tensorapi.ParseKind(k.String()); !ok || got != k {
			t.Errorf("ParseKind(%q) = %v, %v", k.String(), got, ok)
		}
		if seen[k.String()] {
			t.Errorf("two kinds are called %q", k)
		}
		seen[k.String()] = true
	}
	for _, s := range []string{"", "unknown", "Read", "kind(99)"} {
		if k, ok := tensorapi.ParseKind(s); ok {
			t.Errorf("ParseKind(%q) = %v, want none", s, k)
		}
	}
	if got := tensorapi.Kind(99).String(); got != "kind(99)" {
		t.Errorf("Kind(99) = %q", got)
	}
}

// checkFunc reports what makes no sense in one row of a table.
func checkFunc(t *testing.T, name string, f tensorapi.Func) {
	t.Helper()
	method := strings.HasPrefix(name, "(")
	needsOperand := f.Kind == tensorapi.Read || f.Kind == tensorapi.Transfer || f.Kind == tensorapi.Save || f.Kind == tensorapi.Print || f.Kind == tensorapi.Wait ||
		f.Kind == tensorapi.View || f.Kind == tensorapi.InPlace || f.Kind == tensorapi.Value || f.Kind == tensorapi.Call
	switch {
	case name != f.Name:
		t.Errorf("%s is filed under %s", f.Name, name)
	case f.Kind == tensorapi.Unknown:
		t.Errorf("%s has no kind", name)
	case f.Arg < tensorapi.None || f.Arg == tensorapi.Recv && !method:
		t.Errorf("%s has no operand %d", name, f.Arg)
	case needsOperand && f.Arg == tensorapi.None:
		t.Errorf("%s: a %v function needs an operand", name, f.Kind)
	case f.Kind == tensorapi.Call && f.Calls == tensorapi.Never:
		t.Errorf("%s calls a function, but never", name)
	}
}

// Every row of the table has to make sense by itself.
func TestOurs(t *testing.T) {
	ours := tensorapi.Ours()
	for name, f := range ours.Funcs {
		checkFunc(t, name, f)
		if f.Kind != tensorapi.Call && f.Calls != tensorapi.Never {
			t.Errorf("%s is %v but calls %d", name, f.Kind, f.Calls)
		}
		if path := packageOf(name); !ours.Owns(path) {
			t.Errorf("%s is in %s, no package of the library", name, path)
		}
	}
}

// Every method that the tables name exists, and does what it says there.
func TestForms(t *testing.T) {
	ours := tensorapi.Ours()
	check := func(of, name string, kind tensorapi.Kind) {
		t.Helper()
		if f, ok := ours.Funcs[name]; !ok || f.Kind != kind {
			t.Errorf("%s: %s is %v, want %v", of, name, f.Kind, kind)
		}
	}
	forms := map[string]bool{}
	for name, f := range ours.Funcs {
		method := name[:strings.LastIndexByte(name, '.')+1]
		if f.F64 != "" {
			kind := f.Kind
			if kind == tensorapi.Read {
				kind = tensorapi.Op
			}
			check(name, method+f.F64, kind)
			forms[f.F64] = true
		}
		if f.Index != "" {
			check(name, method+f.Index, tensorapi.Op)
			forms[f.Index] = true
		}
		if f.Batch != tensorapi.Alone && f.Kind != tensorapi.Op && f.Kind != tensorapi.View {
			t.Errorf("%s is %v: only what enqueues or views can be done for a batch", name, f.Kind)
		}
	}
	for _, form := range []string{"ItemF64", "AddF64", "SubF64", "MulF64", "DivF64", "AddScaledF64", "I64", "RowI64", "SliceI64"} {
		if !forms[form] {
			t.Errorf("nothing has the form %s", form)
		}
	}
	for _, text := range []string{"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="} {
		method, ok := tensorapi.NumberOperator(text)
		if !ok {
			t.Errorf("no method for %s", text)
		}
		check(text, "("+tensorapi.Number+")."+method, tensorapi.Op)
	}
	for _, text := range []string{"+", "-", "*"} {
		method, ok := tensorapi.IntegerOperator(text)
		if !ok {
			t.Errorf("no method for %s of integers", text)
		}
		check(text, "("+tensorapi.Integer+")."+method, tensorapi.Op)
	}
	for _, fn := range []string{"max", "min", "math.Max", "math.Min", "math.Abs", "math.Sqrt", "math.Floor", "math.Ceil", "math.RoundToEven", "math.Exp", "math.Log", "math.Pow"} {
		method, ok := tensorapi.NumberFunc(fn)
		if !ok {
			t.Errorf("no method for %s", fn)
		}
		check(fn, "("+tensorapi.Number+")."+method, tensorapi.Op)
	}
	for _, text := range []string{"&&", "||", "!"} {
		method, ok := tensorapi.ConditionOperator(text)
		if !ok {
			t.Errorf("no method for %s", text)
		}
		check(text, "("+tensorapi.Condition+")."+method, tensorapi.Op)
	}
	check("Const", tensorapi.Const, tensorapi.Pure)
	for _, text := range []string{"%", "&", "&^", "<<", "math.FMA", "math.Inf", "math.Float64bits", ""} {
		_, operator := tensorapi.NumberOperator(text)
		_, integer := tensorapi.IntegerOperator(text)
		_, fn := tensorapi.NumberFunc(text)
		_, condition := tensorapi.ConditionOperator(text)
		if operator || integer || fn || condition {
			t.Errorf("%q has a form", text)
		}
	}
	// Taking a row is free, taking rows by value may fail.
	tensorName := "(*" + module + "/runtime/tensor.Tensor)."
	for name, want := range map[string]tensorapi.Batch{
		"Row": tensorapi.Batched, "Take": tensorapi.BatchedFails, "Div": tensorapi.BatchedFails, "ArgMax": tensorapi.Batched, "Item": tensorapi.Alone,
	} {
		if got := ours.Funcs[tensorName+name].Batch; got != want {
			t.Errorf("%s: batch %d, want %d", name, got, want)
		}
	}
}

const module = "github.com/asyncgen/asyncgen"

func TestOwns(t *testing.T) {
	for path, want := range map[string]bool{
		"github.com/asyncgen/asyncgen/runtime":                    true,
		"github.com/asyncgen/asyncgen/runtime/tensor":             true,
		"github.com/asyncgen/asyncgen/runtimes":                   false,
		"github.com/asyncgen/asyncgen/testdata/programs/mlp":      false,
		"github.com/asyncgen/asyncgen":                            false,
		"example.com/github.com/asyncgen/asyncgen/runtime/tensor": false,
	} {
		if got := tensorapi.Ours().Owns(path); got != want {
			t.Errorf("Owns(%q) = %v", path, got)
		}
	}
	one := &tensorapi.Profile{Packages: []string{"example.com/t"}}
	if !one.Owns("example.com/t") || one.Owns("example.com/t/sub") {
		t.Error("a package without /... stands for itself alone")
	}
}

// Functions are matched by type and import path: generic instances, promoted
// methods and method values are found, namesakes are not.
func TestLookup(t *testing.T) {
	const src = `package tensor
type Tensor struct{}
func (t *Tensor) Item() float64 { return 0 }
func ItemOf[T any](t *Tensor) T { var zero T; return zero }
type alias = Tensor
type wrapper struct{ *Tensor }
type other struct{}
func (other) Item() float64 { return 0 }
func _(t *alias, w wrapper, o other) {
	t.Item()
	w.Item()
	ItemOf[int](t)
	o.Item()
	func() {}()
}`
	ours := tensorapi.Ours()
	for path, want := range map[string][]tensorapi.Kind{
		"github.com/asyncgen/asyncgen/runtime/tensor": {tensorapi.Read, tensorapi.Read, tensorapi.Read, 0, 0},
		"example.com/runtime/tensor":                  {0, 0, 0, 0, 0},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "t.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}, Types: map[ast.Expr]types.TypeAndValue{}}
		pkg, err := new(types.Config).Check(path, fset, []*ast.File{file}, info)
		if err != nil {
			t.Fatal(err)
		}
		var got []tensorapi.Kind
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				fn, _ := typeutil.Callee(info, call).(*types.Func)
				f, _ := ours.Lookup(fn)
				got = append(got, f.Kind)
			}
			return true
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: kinds of the calls are %v, want %v", path, got, want)
		}
		own := path == "github.com/asyncgen/asyncgen/runtime/tensor"
		tensor := pkg.Scope().Lookup("Tensor").Type()
		for _, typ := range []types.Type{tensor, types.NewPointer(tensor), pkg.Scope().Lookup("alias").Type()} {
			if ours.IsTensor(typ) != own {
				t.Errorf("IsTensor(%v) = %v", typ, !own)
			}
		}
		for _, typ := range []types.Type{pkg.Scope().Lookup("wrapper").Type(), types.Typ[types.Int], types.Universe.Lookup("error").Type()} {
			if ours.IsTensor(typ) || ours.IsCell(typ) {
				t.Errorf("%v passes for a tensor", typ)
			}
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"/home/me/a b/größe.go":        "/home/me/a b/größe.go",
		`C:\new\train.go`:              `C:\new\train.go`,
		"\x1b[31mred\n::error::\r\x00": `\x1b[31mred\n::error::\r\x00`,
		"a\u202egpj.go\u009b\x7f":      `a\u202egpj.go\u009b\x7f`,
		"\xff\ufffd":                   `\xff` + "\ufffd",
		"tab\t":                        `tab\t`,
	} {
		if got := tensorapi.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got := tensorapi.VisibleLines("a\n\tb\x1b\n"); got != "a\n\tb\\x1b\n" {
		t.Errorf("VisibleLines: %q", got)
	}
}
