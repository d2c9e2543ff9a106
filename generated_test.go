package asyncgen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedNames holds the names of files against what they say of
// themselves: ours that are generated begin with "z", and no others do. What
// asyncgen writes beside a user's file ends in _async.go instead.
func TestGeneratedNames(t *testing.T) {
	err := walkModule(func(file string) error {
		name := filepath.Base(file)
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		switch generated, z := ast.IsGenerated(f), strings.HasPrefix(name, "z"); {
		case generated && !z:
			t.Errorf("%s is generated: its name has to begin with z", file)
		case z && !generated:
			t.Errorf("%s begins with z, which is for generated files, but has no \"Code generated … DO NOT EDIT.\" line", file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
