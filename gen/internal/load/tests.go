package load

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// ArgsName is the name of the function that makes the arguments with which the
// generated test runs a function: asyncgenTrainArgs, asyncgenModelEvalArgs.
func ArgsName(decl *ast.FuncDecl) string {
	return "asyncgen" + Receiver(decl) + decl.Name.Name + "Args"
}

// Receiver returns the name of the type that a method belongs to, or "".
func Receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	t := decl.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// argumentMakers finds the functions of a package that are called like
// [ArgsName], in its tests, too. Files that do not parse have none.
func argumentMakers(dir, pkg string) map[string]bool {
	found := make(map[string]bool)
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "func asyncgen") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil || file.Name.Name != pkg {
			continue
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "asyncgen") && strings.HasSuffix(fn.Name.Name, "Args") {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}

// Sum identifies what a declaration says: its tokens and directives, without
// its layout and comments. asynctest.Fresh computes the same.
func Sum(text []byte) string {
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
