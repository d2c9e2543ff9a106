package tensorapi_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// acme uses all that a profile can say.
const acme = `{
	"name": "acme",
	"async": "gpu",
	"core": ["$t", "example.com/acme/internal/..."],
	"tensors": ["$t.Tensor"],
	"cells": ["$t.Weight"],
	"values": true,
	"finishes": true,
	"callsArg": {"once": ["$t.NoGrad", "(*$t.Tensor).Flat"], "loop": ["$t.Each(1)"], "later": ["$t.After(2)"]},
	"read": ["(*$t.Tensor).{Item,Float32s,Flat}", "$t.Scalar", "$t.Copy(1)", "(*$t.Grid[T, B]).Cell"],
	"print": ["(*$t.Tensor).{,Must}String"],
	"inplace": ["(*$t.Tensor).*_"],
	"view": ["(*$t.Tensor).View*"],
	"step": ["$t.Step", "(*$t.Weight).Set"],
	"op": ["*"],
	"printers": ["example.com/acme/log.Infof"],
	"rebuild": ["$t.Compile"],
	"paths": {"t": ["example.com/acme/tensor", "example.com/acme/v2/tensor"]}
}`

func TestParse(t *testing.T) {
	p, err := tensorapi.Parse("acme.json", []byte(acme))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "acme" || p.Async != tensorapi.OnGPU || !p.Values || !p.Finishes || !p.Ops {
		t.Errorf("profile is %+v", p)
	}
	for path, want := range map[string]bool{
		"example.com/acme/tensor": true, "example.com/acme/v2/tensor": true, "example.com/acme/tensor/sub": false,
		"example.com/acme/internal": true, "example.com/acme/internal/a": true, "example.com/acme": false,
	} {
		if p.Owns(path) != want {
			t.Errorf("Owns(%q) = %v", path, !want)
		}
	}
	const recv, none = tensorapi.Recv, tensorapi.None
	for _, path := range []string{"example.com/acme/tensor", "example.com/acme/v2/tensor"} {
		for name, want := range map[string]tensorapi.Func{
			"(*%s.Tensor).Item":       {Kind: tensorapi.Read, Arg: recv},
			"(*%s.Tensor).Float32s":   {Kind: tensorapi.Read, Arg: recv},
			"(*%s.Tensor).Flat":       {Kind: tensorapi.Read, Arg: recv, Calls: tensorapi.Once},
			"%s.Scalar":               {Kind: tensorapi.Read, Arg: 0},
			"%s.Copy":                 {Kind: tensorapi.Read, Arg: 1},
			"(*%s.Grid).Cell":         {Kind: tensorapi.Read, Arg: recv},
			"(*%s.Tensor).String":     {Kind: tensorapi.Print, Arg: recv},
			"(*%s.Tensor).MustString": {Kind: tensorapi.Print, Arg: recv},
			"%s.Step":                 {Kind: tensorapi.Mutate, Arg: none},
			"(*%s.Weight).Set":        {Kind: tensorapi.Mutate, Arg: recv},
			"%s.NoGrad":               {Kind: tensorapi.Call, Arg: 0, Calls: tensorapi.Once},
			"%s.Each":                 {Kind: tensorapi.Call, Arg: 1, Calls: tensorapi.Loop},
			"%s.After":                {Kind: tensorapi.Call, Arg: 2, Calls: tensorapi.Later},
		} {
			want.Name = fmt.Sprintf(name, path)
			if got := p.Funcs[want.Name]; got != want {
				t.Errorf("%s is %+v, want %+v", want.Name, got, want)
			}
		}
		if !p.Rebuilds[path+".Compile"] {
			t.Errorf("%s.Compile builds nothing", path)
		}
	}
	if !p.Printers["example.com/acme/log.Infof"] || len(p.Patterns) != 4 || len(p.Funcs) != 26 {
		t.Errorf("%d functions, patterns %v, printers %v", len(p.Funcs), p.Patterns, p.Printers)
	}
}

// What a profile says of functions with similar names, and of those that it does
// not mention.
func TestPatterns(t *testing.T) {
	p, err := tensorapi.Parse("acme.json", []byte(acme))
	if err != nil {
		t.Fatal(err)
	}
	pkg := check(t, "example.com/acme/tensor", `package tensor
type Tensor struct{}
type Grid[T, B any] struct{}
func (*Tensor) Item() float64 { return 0 }
func (*Tensor) Add_(*Tensor) *Tensor { return nil }
func (*Tensor) ViewAs() *Tensor { return nil }
func (*Tensor) Exp() *Tensor { return nil }
func (*Tensor) Split() ([]*Tensor, error) { return nil, nil }
func (*Tensor) Size() int { return 0 }
func (*Tensor) String() string { return "" }
func (*Grid[X, Y]) Cell() X { var x X; return x }
func Each(n int, f func()) {}
`)
	set := tensorapi.NewSet(p)
	for name, want := range map[string]tensorapi.Kind{
		"Tensor.Item": tensorapi.Read, "Tensor.Add_": tensorapi.InPlace, "Tensor.ViewAs": tensorapi.View,
		"Tensor.Exp": tensorapi.Op, "Tensor.Split": tensorapi.Op, "Tensor.Size": tensorapi.Unknown,
		"Grid.Cell": tensorapi.Read, "Each": tensorapi.Call,
	} {
		fn := object(t, pkg, name)
		f, lib := set.Lookup(fn)
		if f.Kind != want || (lib == p) != (want != tensorapi.Unknown) {
			t.Errorf("%s is %v of %v, want %v", name, f.Kind, lib, want)
		}
		if direct, ok := p.Lookup(fn); direct != f || ok != (lib == p) {
			t.Errorf("%s: the profile says %v, the set %v", name, direct, f)
		}
	}
	tensor := pkg.Scope().Lookup("Tensor").Type()
	if set.TensorOf(types.NewPointer(tensor)) != p || set.TensorOf(types.Typ[types.Int]) != nil {
		t.Error("the set does not know its tensors")
	}
	// Only a *Tensor has the method that prints.
	if !p.Formats(types.NewPointer(tensor)) || p.Formats(tensor) {
		t.Error("fmt would not wait for what it waits for")
	}
	if each, _ := p.Lookup(object(t, pkg, "Each")); each.CallsArg(1) != tensorapi.Loop || each.CallsArg(0) != tensorapi.Never {
		t.Errorf("Each calls %v", each)
	}
}

func check(t *testing.T, path, src string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check(path, fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// object returns the function or method "F" or "T.M".
func object(t *testing.T, pkg *types.Package, name string) *types.Func {
	t.Helper()
	typ, method, ok := strings.Cut(name, ".")
	if !ok {
		return pkg.Scope().Lookup(name).(*types.Func)
	}
	obj, _, _ := types.LookupFieldOrMethod(types.NewPointer(pkg.Scope().Lookup(typ).Type()), true, pkg, method)
	fn, ok := obj.(*types.Func)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return fn
}

// All mistakes in a file are reported, each with its place.
func TestParseErrors(t *testing.T) {
	const start = `{"name": "x", "async": true, "tensors": ["a.T"], ` // 49 bytes
	for _, c := range []struct{ text, want string }{
		{`{}`, "x.json:1:1: the profile lacks \"name\"\nx.json:1:1: the profile lacks \"async\"\nx.json:1:1: the profile lacks \"tensors\""},
		{`[]`, "x.json:1:1: a profile is an object"},
		{`{"name": "", "async": false, "tensors": []}`, "x.json:1:10: the name is empty"},
		{`{"name": 1, "async": false, "tensors": []}`, "x.json:1:10: want the name of the library, a string"},
		{"{\n\t\"name\": \"x\",\n\t\"async\": \"cpu\",\n\t\"tensors\": [\"T\"]\n}", "x.json:3:11: \"async\" is true, \"gpu\" or false\nx.json:4:14: \"T\" is not the name of a type"},
		{start + "\n\t\"reads\": []}", `x.json:2:2: there is no setting "reads"; did you mean "read"?`},
		{start + `"colour": {"a": [1, {}]}}`, `x.json:1:50: there is no setting "colour"`},
		{start + `"read": "a.F"}`, `x.json:1:58: "read" is a list`},
		{start + `"read": ["a.F", 7]}`, `x.json:1:66: want the name of a function, a string`},
		{start + `"read": ["a.F", "F"]}`, `x.json:1:66: "F" is not the name of a function`},
		{start + `"read": ["(a.T.F)"]}`, `is not the name of a function`},
		{start + `"read": ["(*a.T).F(x)"]}`, `is not the name of a function`},
		{start + `"read": ["$t.F"]}`, `x.json:1:59: there is no path "t"`},
		{start + `"read": ["a.F"],` + "\n" + `"op": ["a.F"]}`, `x.json:2:8: a.F is under "read", too`},
		{start + `"read": ["*"]}`, `"*" is not the name of a function`},
		{start + `"core": ["a b"]}`, `"a b" is no import path`},
		{start + `"paths": {"t1": ["a"]}}`, `"t1" can't be the name of a path`},
		{start + `"paths": {"t": ["a b"]}}`, `"a b" is no import path`},
		{start + `"paths": {"t": ["$t"]}, "read": ["$t.F"]}`, `"$t" is no import path`},
		{start + `"read": ["a.` + strings.Repeat("{a,b}", 60) + `"]}`, "x.json:1:59: this stands for more than 1000 names"},
		{start + `"callsArg": ["a.F"]}`, `"callsArg" is an object`},
		{start + `"callsArg": {"twice": ["a.F"]}}`, `functions are called once, loop or later, not "twice"`},
		{start + `"values": 1}`, `"values" is true or false`},
		{start + `"name": "y"}`, `x.json:1:50: "name" is there twice`},
		{start + `"read": ["a.F",]}`, "x.json:1:65: invalid character"},
		{start, "x.json:1:"},
		{start + `"read": []} 1`, "there is something after the end"},
		{``, "x.json:1:1: unexpected EOF"},
	} {
		_, err := tensorapi.Parse("x.json", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error\n%v\nwant\n%s", c.text, err, c.want)
		}
	}
}

// Whatever the text is, Parse ends, and without a mistake only if there is a
// profile.
func TestParseAnything(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		text := []byte(acme)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(text))
			switch random.IntN(4) {
			case 0:
				text = text[:at+1]
			case 1:
				text[at] = byte(random.IntN(128))
			case 2:
				text = slices.Delete(text, at, min(at+random.IntN(20), len(text)))
			case 3:
				text = slices.Insert(text, at, slices.Clone(text[at:min(at+random.IntN(20), len(text))])...)
			}
			if len(text) == 0 {
				break
			}
		}
		if p, err := tensorapi.Parse("x.json", text); err == nil && (p.Name == "" || len(p.Types) == 0) {
			t.Errorf("seed %d: no mistake in\n%s", seed, text)
		}
	}
}

// The file of a user's module holds profiles and the names of files with some.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("lint/acme.json", acme)
	config := write(tensorapi.ConfigName, `{"effects": {"a.F": ["x", {}]}, "profiles": ["lint/acme.json", {"name": "b", "async": false, "tensors": ["b.T"]}]}`)
	profiles, err := tensorapi.Load(config, nil)
	if err != nil || len(profiles) != 2 || profiles[0].Name != "acme" || profiles[1].Name != "b" {
		t.Fatalf("profiles are %v, %v", profiles, err)
	}
	digest := func() string {
		d, err := tensorapi.Digest(config)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := digest()
	if digest() != before {
		t.Error("the digest changes by itself")
	}
	write("lint/acme.json", strings.Replace(acme, `"gpu"`, "true", 1))
	if digest() == before {
		t.Error("the digest does not depend on what the file refers to")
	}
	for text, want := range map[string]string{
		`{"profiles": ["missing.json"]}`:                 tensorapi.ConfigName + ":1:15: there is no file " + filepath.Join(dir, "missing.json"),
		`{"profiles": [7]}`:                              tensorapi.ConfigName + ":1:15: want a profile, or the name of its file, a string",
		`{"profiles": {}}`:                               `"profiles" is a list`,
		`{"profiles": ["` + tensorapi.ConfigName + `"]}`: "can't be called",
		`{"profiles": ["bad.json"]}`:                     "bad.json:1:1: the profile lacks",
		`{"profiles": [{"name": "x"}]}`:                  tensorapi.ConfigName + ":1:15: the profile lacks",
	} {
		write("bad.json", `{}`)
		_, err := tensorapi.Load(write(tensorapi.ConfigName, text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

// A file above the module, which somebody may have left there, switched rules off in it.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"asyncgen.json", "stray/m/go.mod", "stray/m/deep/er/a.go",
		"own/asyncgen.json", "own/go.mod", "own/deep/a.go", "own/sub/asyncgen.json", "own/sub/deep/a.go", "own/nested/go.mod",
		"work/asyncgen.json", "work/go.work", "work/m/go.mod", "work/m/deep/a.go",
		"none/asyncgen.json", "none/deep/a.go",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ gowork, from, want string }{
		{"", "stray/m", ""},
		{"", "stray/m/deep/er", ""},
		{"", "own", "own"},
		{"", "own/deep", "own"},
		{"", "own/sub/deep", "own/sub"},
		{"", "own/nested", ""},
		{"", "work/m/deep", "work"},
		{"auto", "work/m", "work"},
		{"off", "work/m/deep", ""},
		{filepath.Join(dir, "work", "go.work"), "work/m", "work"},
		{filepath.Join(dir, "other", "go.work"), "work/m", ""},
		{filepath.Join(dir, "go.work"), "own/nested", "own"},
		{filepath.Join(dir, "go.work"), "stray/m", "."},
		{"", "none", "none"},
		{"", "none/deep", ""}, // no module says how far it reaches
	} {
		t.Setenv("GOWORK", c.gowork)
		want := ""
		if c.want != "" {
			want = filepath.Join(dir, filepath.FromSlash(c.want), tensorapi.ConfigName)
		}
		if got := tensorapi.Find(filepath.Join(dir, filepath.FromSlash(c.from))); got != want {
			t.Errorf("from %s, GOWORK=%s: found %q, want %q", c.from, c.gowork, got, want)
		}
	}
}

// Every profile that comes with the module makes sense, and says something about
// each package that it names.
func TestShipped(t *testing.T) {
	set := tensorapi.NewSet()
	var names []string
	for _, p := range tensorapi.Shipped() {
		names = append(names, p.Name)
		if set.Named(p.Name) != p {
			t.Errorf("%s is not a member of the set", p.Name)
		}
		kinds := make(map[tensorapi.Kind]bool)
		for name, f := range p.Funcs {
			kinds[f.Kind] = true
			checkFunc(t, name, f)
			if path := packageOf(name); !slices.Contains(set.About(path), p) {
				t.Errorf("%s: the set says nothing about %s", name, path)
			}
		}
		for _, name := range append(slices.Clip(p.Types), p.Cells...) {
			if path := packageOf(name); !slices.Contains(set.About(path), p) {
				t.Errorf("%s: the set says nothing about %s", name, path)
			}
		}
		for _, path := range p.Packages {
			if path = strings.TrimSuffix(path, "/..."); set.Owner(path) != p {
				t.Errorf("%s: package %s belongs to another", p.Name, path)
			}
		}
		for _, kind := range []tensorapi.Kind{tensorapi.Read, tensorapi.Host, tensorapi.View, tensorapi.Mutate, tensorapi.Meta} {
			if !kinds[kind] {
				t.Errorf("%s has no function of kind %v", p.Name, kind)
			}
		}
		if len(p.Types) == 0 || !kinds[tensorapi.Op] && !p.Ops {
			t.Errorf("%s has no tensors or no operations", p.Name)
		}
	}
	if want := []string{"asyncgen", "Born", "GoMLX", "Gorgonia", "gotch", "gotorch", "spago"}; !slices.Equal(names, want) {
		t.Errorf("profiles are %v, want %v", names, want)
	}
	for _, path := range []string{"fmt", "example.com/gotch", "github.com/sugarme", "github.com/sugarme/other", "unsafe"} {
		if list := set.About(path); len(list) > 0 {
			t.Errorf("%s has something to say about %s", list[0].Name, path)
		}
	}
}

// A user's profile goes before one of the same name.
func TestReplace(t *testing.T) {
	mine, err := tensorapi.Parse("gotch.json", []byte(`{"name": "gotch", "async": true, "tensors": ["github.com/sugarme/gotch/ts.Tensor"]}`))
	if err != nil {
		t.Fatal(err)
	}
	set := tensorapi.NewSet(mine)
	if set.Named("gotch") != mine {
		t.Error("the profile of a user is not in the set")
	}
	if list := set.About("github.com/sugarme/gotch/ts"); !slices.Equal(list, []*tensorapi.Profile{mine}) {
		t.Errorf("%d profiles speak of gotch", len(list))
	}
	if list := set.About("github.com/sugarme/gotch/nn"); len(list) > 0 {
		t.Error("the profile that was replaced still speaks")
	}
}

// packageOf is the import path in a full name.
func packageOf(full string) string {
	if method, ok := strings.CutPrefix(full, "("); ok {
		full, _, _ = strings.Cut(strings.TrimPrefix(method, "*"), ")")
	}
	full, _, _ = strings.Cut(full, "[")
	return full[:strings.LastIndexByte(full, '.')]
}
