package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// sources are the files that findings are in, read when they are asked for.
type sources map[string]*source

// A source is the text of a file.
type source struct {
	text  []byte
	lines []int // where each line begins
	funcs []funcLines
}

// funcLines are the lines of a declared function.
type funcLines struct {
	name     string
	from, to int
}

func (s sources) read(name string) (*source, error) {
	if src := s[name]; src != nil {
		return src, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	src := &source{text: text, lines: []int{0}}
	for i, b := range text {
		if b == '\n' {
			src.lines = append(src.lines, i+1)
		}
	}
	src.findFuncs()
	s[name] = src
	return src, nil
}

// findFuncs notes the functions; of a file that does not parse, those before
// the mistake.
func (s *source) findFuncs() {
	fset := token.NewFileSet()
	f, _ := parser.ParseFile(fset, "", s.text, parser.SkipObjectResolution)
	if f == nil {
		return
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil && len(fn.Recv.List) == 1 {
			name = "(" + types.ExprString(fn.Recv.List[0].Type) + ")." + name
		}
		s.funcs = append(s.funcs, funcLines{name, fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line})
	}
}

// line returns the text of a line, counted from 1, without what ends it.
func (s *source) line(n int) []byte {
	if n < 1 || n > len(s.lines) {
		return nil
	}
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n] - 1
	}
	return s.text[s.lines[n-1]:end]
}

// column is the number of the code point at a byte of a line, both from 1.
func (s *source) column(line, byteColumn int) int {
	text := s.line(line)
	return utf8.RuneCount(text[:min(max(byteColumn-1, 0), len(text))]) + 1
}

// position is where the byte at an offset is: its line and code point.
func (s *source) position(offset int) (line, column int) {
	line = sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > offset })
	return line, s.column(line, offset-s.lines[line-1]+1)
}

// funcAt names the function that a line is in, empty if none.
func (s *source) funcAt(line int) string {
	for _, f := range s.funcs {
		if f.from <= line && line <= f.to {
			return f.name
		}
	}
	return ""
}

// A findingKey names a finding by its rule, its function and its text. These stay the same when the code
// around it changes.
type findingKey struct {
	Rule    string `json:"rule"`
	Package string `json:"package"` // its folder, relative to some root
	Func    string `json:"func,omitempty"`
	Text    string `json:"text"`
}

// key names a finding, with folders relative to root.
func (s sources) key(root string, f Finding) (findingKey, error) {
	file, line, _ := SplitPosn(f.Posn)
	src, err := s.read(file)
	if err != nil {
		return findingKey{}, err
	}
	dir := filepath.Dir(relative(root, file))
	text := strings.Join(strings.Fields(string(src.line(line))), " ")
	return findingKey{f.Rule, filepath.ToSlash(dir), src.funcAt(line), withoutComments(text)}, nil
}

// withoutComments is a line of code without its comments.
func withoutComments(line string) string {
	if !strings.Contains(line, "//") && !strings.Contains(line, "/*") {
		return line
	}
	file := token.NewFileSet().AddFile("", -1, len(line))
	var s scanner.Scanner
	s.Init(file, []byte(line), nil, scanner.ScanComments)
	var code strings.Builder
	from := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			code.WriteString(line[from:])
			return strings.Join(strings.Fields(code.String()), " ")
		}
		if at := file.Offset(pos); tok == token.COMMENT {
			code.WriteString(line[from:at])
			from = at + len(lit)
		}
	}
}

// hash is a short name for k.
func (k findingKey) hash() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.Rule, k.Package, k.Func, k.Text}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Root returns the folder that reports name files relative to: the nearest one
// around dir that is a git repository, or dir. It is absolute, without symbolic
// links.
func Root(dir string) (string, error) {
	dir, err := realPath(dir)
	if err != nil {
		return "", fmt.Errorf("vet: %w", err)
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			return root, nil
		}
		if root == filepath.Dir(root) {
			return dir, nil
		}
	}
}

// realPath is the absolute path of a folder without symbolic links.
func realPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// relative is the way from root, which has no symbolic links, to a file. It is
// the file itself if there is none.
func relative(root, file string) string {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return file
	}
	return rel
}

// shortPath is file relative to root if it lies below it.
func shortPath(root, file string) string {
	if rel := relative(root, file); filepath.IsLocal(rel) {
		return rel
	}
	return file
}

// formatPosn is the inverse of SplitPosn.
func formatPosn(file string, line, column int) string {
	return file + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(column)
}
