package asyncgen_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide comments may be, with a tab as four columns.
const maxColumns = 120

// TestColumns holds the width of comments in hand-written files. What is indented in a comment is code or
// a table, and stays as it is.
func TestColumns(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case path.Ext(file) == ".go":
			testColumns(t, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testColumns(t *testing.T, file string) {
	text := readText(t, file)
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(parsed) {
		return
	}
	lines := strings.Split(text, "\n")
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			at := files.Position(c.Pos())
			isProse := strings.HasPrefix(c.Text, "// ") && !strings.HasPrefix(c.Text, "//  ") && !strings.HasPrefix(c.Text, "// want")
			if line := lines[at.Line-1]; isProse && columns(line) > maxColumns {
				t.Errorf("%s:%d: a comment ends in column %d, of at most %d", file, at.Line, columns(line), maxColumns)
			}
		}
	}
}

func columns(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
}
