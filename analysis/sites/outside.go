package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Loops that wait for the world outside of the process anyway.

// conversing matches the names of functions that talk to a person.
var conversing = regexp.MustCompile(`(?i:interactive|repl$|converse|prompt$|console)|^[Cc]hat([A-Z_0-9]|$)`)

// IsOutside recognises calls that wait for the world outside the process: the network, a file, a user, time.
func IsOutside(c *blocking.Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch name := fn.Name(); fn.Pkg().Path() {
	case "bufio":
		return name == "Scan" || len(name) >= 4 && name[:4] == "Read"
	case "fmt":
		return slices.Contains([]string{"Scan", "Scanf", "Scanln", "Fscan", "Fscanf", "Fscanln"}, name)
	case "net", "os/exec":
		return true
	case "net/http":
		return !isAnswering(fn)
	case "time":
		return name == "Sleep"
	case "encoding/json", "encoding/gob", "encoding/xml":
		return name == "Decode" || name == "Token"
	case "encoding/binary", "io":
		return name == "Read" || name == "ReadFull" || name == "ReadAtLeast"
	}
	return c.Dynamic && isReader(fn)
}

// readsFiles reports whether l reads only files or streams from outside the process, and shows nothing to anybody
// meanwhile. A stream may be anything but standard input and a connection. Then nobody waits for an answer to each
// part.
func readsFiles(pkg *blocking.Package, l *blocking.Loop) bool {
	for cur := range l.Func.Outermost().Cur.Preorder((*ast.SelectorExpr)(nil), (*ast.Ident)(nil)) {
		if e := nodeOf(cur); types.ExprString(e) == "os.Stdin" || isConn(typeOf(pkg, e)) {
			return false
		}
	}
	return !pkg.Any(l, func(c *blocking.Call) bool {
		if showsAtOnce(c) {
			return true
		}
		if !IsOutside(c) {
			return false
		}
		switch c.Callee.Pkg().Path() {
		case "net", "net/http", "os/exec", "time":
			return true
		case "fmt":
			return !strings.HasPrefix(c.Callee.Name(), "Fscan") // from the terminal
		}
		return c.Dynamic
	})
}

// isKept reports whether the host only keeps the value at p for later, keeps something because of it, or gives up.
func isKept(pkg *blocking.Package, p Place) bool {
	switch {
	case p.Alarm:
		return true
	case p.Use == Kept:
		return !isShared(pkg, p)
	}
	for cur := range p.Cur.Enclosing((*ast.IfStmt)(nil)) {
		n := cur.Node().(*ast.IfStmt)
		return p.Use == Passed && n.Cond.Pos() <= p.Pos && p.Pos < n.Cond.End() && onlyAssigns(n.Body) && onlyAssigns(n.Else)
	}
	return false
}

// onlyAssigns reports whether a branch of an if statement consists of assignments.
func onlyAssigns(branch ast.Stmt) bool {
	switch n := branch.(type) {
	case nil, *ast.AssignStmt, *ast.IncDecStmt:
		return true
	case *ast.BlockStmt:
		return n == nil || !slices.ContainsFunc(n.List, func(s ast.Stmt) bool { return !onlyAssigns(s) })
	case *ast.IfStmt:
		return n.Init == nil && onlyAssigns(n.Body) && onlyAssigns(n.Else)
	}
	return false
}

// isShared reports whether the value at p replaces that of a field, where others may look at it at any time.
func isShared(pkg *blocking.Package, p Place) bool {
	for cur := range p.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := cur.Node().(*ast.AssignStmt)
		return ok && n.Tok == token.ASSIGN && !isGathered(pkg, p) && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
			v := pkg.Variable(e)
			return v != nil && v.IsField()
		})
	}
	return false
}

// isReader recognises the method of an interface that fills a list of numbers, like that of io.Reader: samples of a
// microphone, frames of a camera.
//
//	Read(buf []float32) (int, error)
func isReader(fn *types.Func) bool {
	params, results := fn.Signature().Params(), fn.Signature().Results()
	return strings.HasPrefix(fn.Name(), "Read") && params.Len() == 1 && isNumbers(params.At(0).Type()) &&
		results.Len() == 2 && syntax.IsNumeric(results.At(0).Type()) && syntax.IsError(results.At(1).Type())
}

// convertsFiles reports whether l reads a file and writes one in each iteration, by itself or by functions of the
// package. It is as fast as the files.
func convertsFiles(pkg *blocking.Package, l *blocking.Loop) bool {
	calls := func(ours string, names ...string) func(*blocking.Call) bool {
		is := func(c *blocking.Call) bool {
			if c.Lib == tensorapi.Ours() && strings.HasSuffix(c.Callee.Pkg().Path(), "/runtime/files") {
				return strings.HasPrefix(c.Callee.Name(), ours)
			}
			return slices.ContainsFunc(names, func(name string) bool { return syntax.IsFullName(c.Callee, name) })
		}
		return func(c *blocking.Call) bool { return is(c) || c.Target != nil && c.Target.Contains(is) }
	}
	return pkg.Any(l, calls("Read", "os.Open", "os.ReadFile")) && pkg.Any(l, calls("Write", "os.Create", "os.WriteFile", "os.OpenFile")) && !pkg.Any(l, (*blocking.Call).Mutates)
}

// takesRequests reports whether c is a function of the package that receives requests, values that come
// with a channel for the answer. Whoever calls it again and again serves clients, and these wait.
func takesRequests(pkg *blocking.Package, c *blocking.Call) bool {
	if c.Target == nil || c.Away {
		return false
	}
	for cur := range c.Target.Cur.Preorder((*ast.UnaryExpr)(nil)) {
		if n := cur.Node().(*ast.UnaryExpr); n.Op == token.ARROW && isRequest(pkg, typeOf(pkg, n)) {
			return true
		}
	}
	return false
}

// isRequest reports whether values of type t are structs that come with a channel for the answer, and without tensors.
func isRequest(pkg *blocking.Package, t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	return ok && !pkg.HoldsTensors(s) && slices.ContainsFunc(slices.Collect(s.Fields()), func(f *types.Var) bool { return syntax.IsChan(f.Type()) })
}

// answersAlone reports whether c is called in a loop over requests for something that it does, and not for results: it
// answers them itself.
func answersAlone(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || c.API.Kind != tensorapi.Unknown || pkg.ResultsOf(c).Len() > 0 {
		return false
	}
	ch, ok := typeOf(pkg, s.X).Underlying().(*types.Chan)
	return ok && isRequest(pkg, ch.Elem())
}

// streams reports whether l sends values to somebody who may give up. It has no end of its own and
// doesn't train, so there is no place after it where the values could be read.
//
//	for {
//		…
//		select {
//		case to <- token:
//		case <-ctx.Done():
//			return ctx.Err()
//		}
//	}
func streams(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok || s.Cond != nil || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	for cur := range l.Func.Cur.Preorder((*ast.SelectStmt)(nil)) {
		n := cur.Node().(*ast.SelectStmt)
		if !pkg.Contains(l, pkg.FuncAt(cur), n.Body.List[0].Pos()) && (n.Pos() < s.Body.Pos() || s.Body.End() <= n.Pos()) {
			continue
		}
		sends, receives := false, false
		for _, clause := range n.Body.List {
			switch comm := clause.(*ast.CommClause).Comm.(type) {
			case *ast.SendStmt:
				sends = sends || !pkg.HoldsTensors(pkg.Info.TypeOf(comm.Value))
			case *ast.ExprStmt:
				receives = true
			}
		}
		if sends && receives {
			return true
		}
	}
	return false
}

// isAnswering recognises calls by which an HTTP handler looks at its request or writes its answer. Such
// calls don't wait for anybody else.
func isAnswering(fn *types.Func) bool {
	switch name := fn.Name(); syntax.RecvName(fn) {
	case "ResponseWriter", "Header", "Request":
		return true
	case "":
		return name == "Error" || name == "SetCookie" || name == "Redirect" || name == "NotFound" || name == "StatusText"
	}
	return false
}

// IsAllowed reports whether c is in a literal for asyncrt.AllowSync: somebody has said that this wait is meant.
func IsAllowed(c *blocking.Call) bool {
	for f := range c.In.In() {
		if outer := f.PassedTo(); outer != nil && outer.IsFunc("AllowSync") {
			return true
		}
	}
	return false
}

// IsPaced reports whether a clock says when the next iteration of l begins: l receives from a
// time.Ticker or the like before it does anything else.
func IsPaced(pkg *blocking.Package, l *blocking.Loop) bool {
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		ch, ok := pkg.Info.TypeOf(s.X).Underlying().(*types.Chan)
		return ok && isTimeType(ch.Elem())
	case *ast.ForStmt:
		if len(s.Body.List) == 0 {
			return false
		}
		stmt, ok := s.Body.List[0].(*ast.ExprStmt)
		if !ok {
			return false
		}
		u, ok := ast.Unparen(stmt.X).(*ast.UnaryExpr)
		return ok && u.Op == token.ARROW && isTimeType(pkg.Info.TypeOf(u))
	}
	return false
}

// isTimeType reports whether t is time.Time.
func isTimeType(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Time"
}

// IsStreamed recognises calls that send what was written to somebody at once, such as
// http.Flusher.Flush. A reader wants to see each value as soon as it is there.
func IsStreamed(c *blocking.Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "net/http":
		return fn.Name() == "Flush"
	case "net":
		return fn.Name() == "Write"
	case "fmt", "io":
		return strings.HasPrefix(fn.Name(), "Fprint") && isConn(c.In.Package.Info.TypeOf(c.Expr.Args[0])) ||
			fn.Name() == "WriteString" && isConn(c.In.Package.Info.TypeOf(c.Expr.Args[0]))
	}
	return false
}

// isConn recognises the connections of package net.
func isConn(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "net" && strings.HasSuffix(named.Obj().Name(), "Conn")
}
