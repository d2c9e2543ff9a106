package asynctest

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Fresh checks that the function named function, "Train" or "Model.Eval", in
// the given file is still the one from which code was generated. sum is what
// the generator saw of it. Layout and comments may change, tokens may not.
func Fresh(t testing.TB, file, function, sum string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("asynctest: %v", err)
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("asynctest: %v", err)
	}
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || qualified(fn) != function {
			continue
		}
		from := fn.Pos()
		if fn.Doc != nil {
			from = fn.Doc.Pos()
		}
		if checksum(text[fset.Position(from).Offset:fset.Position(fn.End()).Offset]) != sum {
			t.Fatalf("%s has changed since its rewritten version was generated: run go generate", function)
		}
		return
	}
	t.Fatalf("%s is no longer in %s: run go generate", function, file)
}

// qualified is the name of a function, with that of its receiver's type.
func qualified(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// checksum is Sum of gen/internal/load, which can't be imported here: a test of
// package gen runs both.
func checksum(text []byte) string {
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", fset.Base(), len(text)), text, nil, scanner.ScanComments)
	h := sha256.New()
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return fmt.Sprintf("%x", h.Sum(nil)[:16])
		}
		if tok == token.COMMENT && !strings.HasPrefix(lit, "//asyncgen:") || tok == token.SEMICOLON {
			continue
		}
		fmt.Fprintf(h, "%v %s\n", tok, lit)
	}
}
