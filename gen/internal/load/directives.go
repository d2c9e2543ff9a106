package load

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Kernel is the directive that asks for a rewritten version of a function:
//
//	//asyncgen:kernel [name=F] [window=64] [ahead=8] [off=defer-print] [test=F[int]] [strict] [pure=loss] [output=report]
//
// An effect, or pure, says of the parameters that it names, which are functions, what calling them does, as
// //asyncgen:effects says it of functions with a name. Of a channel, output says that others only receive from it.
type Kernel struct {
	Pos  token.Pos
	Name string // of the rewritten function; "" means the default
	// the instance of a generic function, or of the type that it is a method of, that is tested:
	// Trainer[*Net]
	Test   string
	Window int      // reads in flight; 0 means DefaultWindow
	Ahead  int      // tests of values that a loop runs past; 0 means no bound of its own
	Off    []string // rewrites that must not be made
	Strict bool     // a wait that is left in a loop is an error

	params []paramEffect
}

// A paramEffect is the effect that a directive names for a parameter.
type paramEffect struct{ param, effect string }

// DefaultWindow is how many entries a rewritten loop may lag behind unless
// its directive says otherwise.
const DefaultWindow = 64

// A directiveError is a mistake in an //asyncgen: comment.
type directiveError struct {
	pos token.Pos
	msg string
}

// known lists every directive of the project; the generator itself reads the
// first three.
var known = []string{"kernel", "pure", "effects", "ignore", "api"}

// spaced finds comments that would be directives without the space after the slashes, and
// not sentences that begin with the name of one.
var spaced = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^//[ \t]+asyncgen:(kernel(?:[ \t]+(?:strict|\w+=\S*))*|pure|effects(?:[ \t]+(?:output|input|device|stamps|builds|formats|changes|none))+)[ \t]*$`)
})

// directives collects what the //asyncgen: comments of a file say.
type directives struct {
	kernels map[*ast.FuncDecl]*Kernel
	effects map[*ast.Ident]Effects // by the declaring identifier
	errs    []directiveError
	off     func(rewrite string) error // see Config.Off
}

// newDirectives is of no file yet.
func newDirectives(off func(string) error) *directives {
	if off == nil {
		off = func(string) error { return nil }
	}
	return &directives{kernels: make(map[*ast.FuncDecl]*Kernel), effects: make(map[*ast.Ident]Effects), off: off}
}

func (d *directives) errorf(pos token.Pos, format string, args ...any) {
	d.errs = append(d.errs, directiveError{pos, fmt.Sprintf(format, args...)})
}

// scan reads the directives of one file.
func (d *directives) scan(file *ast.File) {
	claimed := make(map[*ast.Comment]bool)
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			d.function(decl, claimed)
		case *ast.GenDecl:
			d.types(decl, claimed)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			d.field(f, claimed)
		}
		return true
	})
	for _, group := range file.Comments {
		for _, c := range group.List {
			if dir, ok := parse(c); ok && !claimed[c] {
				d.misplaced(dir)
			}
			if m := spaced().FindStringSubmatch(c.Text); m != nil {
				d.errorf(c.Slash, "%q is no directive: write //asyncgen:%s, without the space", c.Text, m[1])
			}
		}
	}
}

// function reads the directives in the doc comment of fn.
func (d *directives) function(fn *ast.FuncDecl, claimed map[*ast.Comment]bool) {
	for _, dir := range in(fn.Doc, claimed) {
		switch dir.Name {
		case "kernel":
			if fn.Body == nil {
				d.errorf(dir.Slash, "%s has no body to rewrite", fn.Name.Name)
				continue
			}
			if fn.Name.Name == "_" || fn.Name.Name == "init" && fn.Recv == nil {
				d.errorf(dir.Slash, "nothing can call %s, nor what would be generated for it: give it another name", fn.Name.Name)
				continue
			}
			if d.kernels[fn] != nil {
				d.errorf(dir.Slash, "two //asyncgen:kernel directives on %s", fn.Name.Name)
				continue
			}
			d.kernels[fn] = d.kernel(dir)
			d.params(fn, d.kernels[fn])
			if k := d.kernels[fn]; k.Test != "" && !isInstance(k.Test, fn) {
				d.errorf(dir.Slash, "test=%s: want type arguments for %s: %[2]s[…]", k.Test, genericName(fn))
			}
		case "pure", "effects":
			d.effects[fn.Name] = d.parseEffects(dir)
		default:
			d.misplaced(dir)
		}
	}
}

// params notes what k says of the parameters of fn that are functions.
func (d *directives) params(fn *ast.FuncDecl, k *Kernel) {
	for _, p := range k.params {
		name := paramOf(fn, p.param)
		if name == nil {
			d.errorf(k.Pos, "%s=%s: %s has no such parameter", p.effect, p.param, fn.Name.Name)
			continue
		}
		e := d.effects[name]
		for _, w := range words {
			if w.name == p.effect {
				w.set(&e)
			}
		}
		d.effects[name] = e
	}
}

// paramOf returns the parameter of fn with that name, or nil.
func paramOf(fn *ast.FuncDecl, param string) *ast.Ident {
	for _, f := range fn.Type.Params.List {
		for _, name := range f.Names {
			if name.Name == param {
				return name
			}
		}
	}
	return nil
}

// genericName is the name that type arguments of fn follow: that of the type that it is a method of, or its own.
func genericName(fn *ast.FuncDecl) string {
	if recv := Receiver(fn); recv != "" {
		return recv
	}
	return fn.Name.Name
}

// isInstance reports whether text is the name of the generic function fn, or of the type that it is
// a method of, with type arguments.
func isInstance(text string, fn *ast.FuncDecl) bool {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return false
	}
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	default:
		return false
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == genericName(fn)
}

// types reads the directives of function types that have a name.
func (d *directives) types(decl *ast.GenDecl, claimed map[*ast.Comment]bool) {
	for _, spec := range decl.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if _, ok := t.Type.(*ast.FuncType); !ok {
			continue
		}
		docs := []*ast.CommentGroup{t.Doc, t.Comment}
		if !decl.Lparen.IsValid() {
			docs = append(docs, decl.Doc)
		}
		for _, doc := range docs {
			for _, dir := range in(doc, claimed) {
				switch dir.Name {
				case "pure", "effects":
					d.effects[t.Name] = d.parseEffects(dir)
				default:
					d.misplaced(dir)
				}
			}
		}
	}
}

// field reads the directives of a method of an interface or of a field.
func (d *directives) field(f *ast.Field, claimed map[*ast.Comment]bool) {
	for _, dir := range append(in(f.Doc, claimed), in(f.Comment, claimed)...) {
		switch dir.Name {
		case "pure", "effects":
			e := d.parseEffects(dir)
			if len(f.Names) == 0 {
				d.misplaced(dir)
			}
			for _, name := range f.Names {
				d.effects[name] = e
			}
		default:
			d.misplaced(dir)
		}
	}
}

// misplaced reports a directive that nothing has read.
func (d *directives) misplaced(dir placed) {
	switch {
	case !slices.Contains(known, dir.Name):
		d.errorf(dir.Slash, "unknown directive //asyncgen:%s%s", dir.Name, DidYouMean(dir.Name, known))
	case dir.Name == "kernel":
		d.errorf(dir.Slash, "//asyncgen:kernel belongs in the comment directly above a function declaration")
	case dir.Name == "pure" || dir.Name == "effects":
		d.errorf(dir.Slash, "//asyncgen:%s belongs in the comment of a function, a function type, a method of an interface or a field", dir.Name)
	}
}

// placed is a directive and where it stands.
type placed struct {
	ast.Directive
	comment *ast.Comment
}

func parse(c *ast.Comment) (placed, bool) {
	dir, ok := ast.ParseDirective(c.Slash, c.Text)
	return placed{dir, c}, ok && dir.Tool == "asyncgen"
}

// in returns the directives of a comment group and claims them.
func in(g *ast.CommentGroup, claimed map[*ast.Comment]bool) []placed {
	if g == nil {
		return nil
	}
	var dirs []placed
	for _, c := range g.List {
		if dir, ok := parse(c); ok {
			claimed[c] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (d *directives) kernel(dir placed) *Kernel {
	k := &Kernel{Pos: dir.Slash}
	for _, word := range strings.Fields(dir.Args) {
		key, value, hasValue := strings.Cut(word, "=")
		switch {
		case key == "strict" && !hasValue:
			k.Strict = true
		case key == "name" && token.IsIdentifier(value):
			k.Name = value
		case (key == "window" || key == "ahead") && hasValue:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				d.errorf(dir.Slash, "%s: want a number of at least 1", word)
				continue
			}
			if key == "window" {
				k.Window = n
			} else {
				k.Ahead = n
			}
		case key == "off" && hasValue:
			for r := range strings.SplitSeq(value, ",") {
				if err := d.off(r); err != nil {
					d.errorf(dir.Slash, "off=%s: %v", r, err)
					continue
				}
				k.Off = append(k.Off, r)
			}
		case key == "test" && hasValue:
			k.Test = value
		case hasValue && (key == "pure" || slices.Contains(wordNames(), key)):
			for param := range strings.SplitSeq(value, ",") {
				k.params = append(k.params, paramEffect{param, key})
			}
		case key == "name":
			d.errorf(dir.Slash, "name=%s: not an identifier", value)
		default:
			d.errorf(dir.Slash, "//asyncgen:kernel has no option %q%s", word, DidYouMean(key, append([]string{"name", "window", "ahead", "off", "test", "strict", "pure"}, wordNames()...)))
		}
	}
	return k
}

func (d *directives) parseEffects(dir placed) Effects {
	if dir.Name == "pure" {
		return Effects{}
	}
	e, err := parseEffects(dir.Args)
	if err != nil {
		d.errorf(dir.Slash, "//asyncgen:effects %v", err)
	}
	return e
}

// DidYouMean proposes the candidate nearest to word, if one is near.
func DidYouMean(word string, candidates []string) string {
	best, dist := "", 3
	for _, c := range candidates {
		if n := distance(word, c); n < dist {
			best, dist = c, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", best)
}

// distance is the edit distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
