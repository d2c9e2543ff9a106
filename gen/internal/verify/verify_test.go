package verify_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/verify"
	"golang.org/x/tools/go/packages"
)

// pairs are bodies of functions with the parameters of the header below. Each right one does what the original does,
// each wrong one does not, in one way.
var pairs = []struct {
	name, original string
	right          []string
	wrong          map[string]string
}{{
	name:     "entries",
	original: `for i, x := range xs { total += x.Sum().Item(); fmt.Fprintln(out, i, total) }; return w, total`,
	right: []string{
		`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) }) }
		later.Flush(); return w, total`,
		`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { later.Poll(); at := later.Read(x.Sum()); later.Do(func() { total += at.Item() }); later.Do(func() { fmt.Fprintln(out, i, total) }) }
		later.Flush(); return w, total`,
	},
	wrong: map[string]string{
		"no flush": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) }) }
		return w, total`,
		"not closed": `later := asyncrt.NewLater[struct{}](9)
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) }) }
		later.Flush(); return w, total`,
		"too early": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { total += at.Item() }); fmt.Fprintln(out, i, total) }
		later.Flush(); return w, total`,
		"another order": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { fmt.Fprintln(out, i, total); total += at.Item() }) }
		later.Flush(); return w, total`,
		"once more": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) }) }
		later.Flush(); fmt.Fprintln(out, 0, total); return w, total`,
		"another tensor": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Mean()); later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) }) }
		later.Flush(); return w, total`,
	},
}, {
	// A bug: a test with a constant that is in the function of an exit ended late, since that of the original ended
	// early in a run with short loops.
	name:     "a test that values decide, with a constant",
	original: `n := 0; for n < 3 { w = w.MulScalar(0.5); if w.Sum().Item() > tol { n++ }; fmt.Fprintln(out, n) }; return w, float64(n)`,
	right: []string{`n := 0; type state struct{ w *tensor.Tensor }; later := asyncrt.NewLater[state](9); defer later.Close()
		for {
			if end, ok := later.BreakIf(func() bool { return !(n < 3) }, state{w}); ok { w = end.w; break }
			w = w.MulScalar(0.5); at := later.Read(w.Sum())
			later.Do(func() { if at.Item() > tol { n++ }; fmt.Fprintln(out, n) })
		}
		later.Flush(); return w, float64(n)`},
	wrong: map[string]string{
		"one more": `n := 0; type state struct{ w *tensor.Tensor }; later := asyncrt.NewLater[state](9); defer later.Close()
		for {
			if end, ok := later.BreakIf(func() bool { return !(n < 4) }, state{w}); ok { w = end.w; break }
			w = w.MulScalar(0.5); at := later.Read(w.Sum())
			later.Do(func() { if at.Item() > tol { n++ }; fmt.Fprintln(out, n) })
		}
		later.Flush(); return w, float64(n)`,
		"the tensor of later": `n := 0; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for {
			if _, ok := later.BreakIf(func() bool { return !(n < 3) }, struct{}{}); ok { break }
			w = w.MulScalar(0.5); at := later.Read(w.Sum())
			later.Do(func() { if at.Item() > tol { n++ }; fmt.Fprintln(out, n) })
		}
		later.Flush(); return w, float64(n)`,
	},
}, {
	name: "copies of a list of unknown length that are cut",
	original: `ts := append([]float64(nil), tols...); for _, x := range xs { v := x.Sum().Item(); ts = append(ts, v); ts = ts[1:]; ts[0] = v
		fmt.Fprintln(out, ts) }; return w, ts[0]`,
	right: []string{`ts, us := append([]float64(nil), tols...), append([]float64(nil), tols...)
		for _, x := range xs { v := x.Sum().Item(); ts, us = append(ts, v), append(us, v); ts, us = ts[1:], us[1:]; ts[0], us[0] = v, v
		fmt.Fprintln(out, ts) }; return w, us[0]`},
	wrong: map[string]string{
		"a copy is not cut": `ts, us := append([]float64(nil), tols...), append([]float64(nil), tols...)
		for _, x := range xs { v := x.Sum().Item(); ts, us = append(ts, v), append(us, v); ts = ts[1:]; ts[0], us[0] = v, v
		fmt.Fprintln(out, us) }; return w, us[0]`,
		"a copy is not set": `ts, us := append([]float64(nil), tols...), append([]float64(nil), tols...)
		for _, x := range xs { v := x.Sum().Item(); ts, us = append(ts, v), append(us, v); ts, us = ts[1:], us[1:]; ts[0] = v
		fmt.Fprintln(out, us) }; return w, ts[0]`,
		"one list": `ts := append([]float64(nil), tols...); us := ts[:len(ts)]
		for _, x := range xs { v := x.Sum().Item(); ts = append(ts, v); ts = ts[1:]; us = ts; ts[0] = v; us[0] = 0
		fmt.Fprintln(out, ts) }; return w, ts[0]`,
		"cut after it was set": `ts := append([]float64(nil), tols...); for _, x := range xs { v := x.Sum().Item(); ts = append(ts, v); ts[0] = v; ts = ts[1:]
		fmt.Fprintln(out, ts) }; return w, ts[0]`,
	},
}, {
	name:     "parts of a list that begin at places that are not known",
	original: `ts := append([]float64(nil), tols...); us := ts[len(rates):]; us[0] = tol; copy(us, rates); fmt.Fprintln(out, ts); return w, us[1]`,
	right: []string{`ts, ys := append([]float64(nil), tols...), append([]float64(nil), tols...); us, vs := ts[len(rates):], ys[len(rates):]
		us[0], vs[0] = tol, tol; copy(us, rates); copy(vs, rates); fmt.Fprintln(out, ts); return w, vs[1]`},
	wrong: map[string]string{
		"copied to another part":  `ts := append([]float64(nil), tols...); us := ts[len(rates):]; us[0] = tol; copy(ts, rates); fmt.Fprintln(out, ts); return w, us[1]`,
		"stored in another part":  `ts := append([]float64(nil), tols...); us := ts[len(rates):]; ts[0] = tol; copy(us, rates); fmt.Fprintln(out, ts); return w, us[1]`,
		"another part":            `ts := append([]float64(nil), tols...); us := ts[len(xs):]; us[0] = tol; copy(us, rates); fmt.Fprintln(out, ts); return w, us[1]`,
		"a part of another list":  `ts := append([]float64(nil), tols...); us := append([]float64(nil), ts...)[len(rates):]; us[0] = tol; copy(us, rates); fmt.Fprintln(out, ts); return w, us[1]`,
		"copied to a shorter one": `ts := append([]float64(nil), tols...); us := ts[len(rates):]; us[0] = tol; copy(us[:len(xs)], rates); fmt.Fprintln(out, ts); return w, us[1]`,
	},
}, {
	name: "structs in a list, with pointers to what changes later",
	original: `type part struct { of *row; n int }; var all []part
		for i, x := range xs { s := &row{}; s.sum += x.Sum().Item(); all = append(all, part{s, i}); all[0].n = i }; fmt.Fprintln(out, all); return w, total`,
	right: []string{`type part struct { of *row; n int }; var all []part; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := &row{}; at := later.Read(x.Sum()); later.Do(func() { s.sum += at.Item() }); all = append(all, part{s, i}); all[0].n = i }
		later.Flush(); fmt.Fprintln(out, all); return w, total`},
	wrong: map[string]string{
		"a copy": `type part struct { of *row; n int }; var all []part; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := &row{}; at := later.Read(x.Sum()); later.Do(func() { s.sum += at.Item() }); c := *s; all = append(all, part{&c, i}); all[0].n = i }
		later.Flush(); fmt.Fprintln(out, all); return w, total`,
		"another field": `type part struct { of *row; n int }; var all []part; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := &row{}; at := later.Read(x.Sum()); later.Do(func() { s.sum += at.Item() }); p := part{s, i}; all = append(all, p); p.n = i; all[0].of.n = i }
		later.Flush(); fmt.Fprintln(out, all); return w, total`,
		"another element": `type part struct { of *row; n int }; var all []part; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := &row{}; at := later.Read(x.Sum()); later.Do(func() { s.sum += at.Item() }); all = append(all, part{s, i}); all[len(all)-1].n = 0 }
		later.Flush(); fmt.Fprintln(out, all); return w, total`,
	},
}, {
	name: "arrays in a list, with pointers to what changes later",
	original: `var all [][2]*row; var last [2]*row
		for i, x := range xs { s := [2]*row{{}, {n: i}}; s[1].sum += x.Sum().Item(); all = append(all, s); last[0] = s[1]; all[0][0].n = i }
		for _, s := range last { fmt.Fprintln(out, s == nil) }; fmt.Fprintln(out, all, last); return w, total`,
	right: []string{`var all [][2]*row; var last [2]*row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := [2]*row{{}, {n: i}}; at := later.Read(x.Sum()); later.Do(func() { s[1].sum += at.Item() }); all = append(all, s); last[0] = s[1]; all[0][0].n = i }
		later.Flush(); for _, s := range last { fmt.Fprintln(out, s == nil) }; fmt.Fprintln(out, all, last); return w, total`},
	wrong: map[string]string{
		"another element": `var all [][2]*row; var last [2]*row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := [2]*row{{}, {n: i}}; at := later.Read(x.Sum()); later.Do(func() { s[0].sum += at.Item() }); all = append(all, s); last[0] = s[1]; all[0][0].n = i }
		later.Flush(); for _, s := range last { fmt.Fprintln(out, s == nil) }; fmt.Fprintln(out, all, last); return w, total`,
		"a copy is changed": `var all [][2]*row; var last [2]*row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := [2]*row{{}, {n: i}}; at := later.Read(x.Sum()); later.Do(func() { s[1].sum += at.Item() }); all = append(all, s); c := last; c[0] = s[1]; all[0][0].n = i }
		later.Flush(); for _, s := range last { fmt.Fprintln(out, s == nil) }; fmt.Fprintln(out, all, last); return w, total`,
		"the array is changed that was copied": `var all [][2]*row; var last [2]*row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { s := [2]*row{{}, {n: i}}; at := later.Read(x.Sum()); all = append(all, s); s[0] = s[1]; later.Do(func() { s[1].sum += at.Item() }); last[0] = s[1]; all[0][1].n = i }
		later.Flush(); for _, s := range last { fmt.Fprintln(out, s == nil) }; fmt.Fprintln(out, all, last); return w, total`,
	},
}, {
	name:     "objects that are alike, in a list and in an array",
	original: `all, both := []*row{{}, {}, {}, {}}, [4]*row{{}, {}, {}, {}}; for _, x := range xs { all[len(xs)%4].sum += x.Sum().Item(); both[len(xs)%4].n++ }; fmt.Fprintln(out, all, both); return w, 0`,
	right: []string{`all, both := []*row{{}, {}, {}, {}}, [4]*row{{}, {}, {}, {}}; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { at := later.Read(x.Sum()); later.Do(func() { all[len(xs)%4].sum += at.Item() }); both[len(xs)%4].n++ }; later.Flush(); fmt.Fprintln(out, all, both); return w, 0`},
}, {
	name:     "a literal that names some elements of an array, in another order",
	original: `a := &row{}; c := [4]*row{2: a, 1: {n: 1}}; if p := c[len(xs)%4]; p != nil { p.n += 2 }; return w, float64(a.n - c[1].n)`,
	right:    []string{`a := &row{}; c := [...]*row{nil, {n: 1}, a, nil}; if p := c[len(xs)%4]; p != nil { p.n += 2 }; return w, float64(c[2].n - c[1].n)`},
	wrong: map[string]string{
		"others are taken": `a := &row{}; c := [4]*row{1: a, 2: {n: 1}}; if p := c[len(xs)%4]; p != nil { p.n += 2 }; return w, float64(a.n - c[2].n)`,
		"none is nil":      `a := &row{}; c := [4]*row{2: a, 1: {n: 1}}; if p := c[1+len(xs)%2]; p != nil { p.n += 2 }; return w, float64(a.n - c[1].n)`,
		"never nil":        `a := &row{}; c := [4]*row{2: a, 1: {n: 1}}; if p := c[len(xs)%4]; p != c[2] { c[1].n += 2 } else { a.n += 2 }; return w, float64(a.n - c[1].n)`,
	},
}, {
	name:     "variables of type switches",
	original: `var v any = tol; switch n := v.(type) { case float64: total += n; case int: total -= 1 }; return w, total`,
	right:    []string{`var v any = tol; switch m := v.(type) { case float64: total = total + m; case int: total -= 1 }; return w, total`},
	wrong: map[string]string{
		"another sum":  `var v any = tol; switch n := v.(type) { case float64: total -= n; case int: total -= 1 }; return w, total`,
		"another case": `var v any = tol; switch n := v.(type) { case float64: total += n; case int8: total -= 1 }; return w, total`,
	},
}, {
	name:     "variables that change",
	original: `n := 0; for _, x := range xs { n++; total += float64(n) * x.Sum().Item() }; return w, total`,
	right: []string{`n := 0; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { n++; nAt := n; at := later.Read(x.Sum()); later.Do(func() { total += float64(nAt) * at.Item() }) }
		later.Flush(); return w, total`},
	wrong: map[string]string{"not copied": `n := 0; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { n++; at := later.Read(x.Sum()); later.Do(func() { total += float64(n) * at.Item() }) }
		later.Flush(); return w, total`,
		"not closed": `n := 0; later := asyncrt.NewLater[struct{}](9)
		for _, x := range xs { n++; nAt := n; at := later.Read(x.Sum()); later.Do(func() { total += float64(nAt) * at.Item() }) }
		later.Flush(); return w, total`},
}, {
	name:     "exits",
	original: `for i, x := range xs { w = w.Sub(x); if w.Norm().Item() < tol { return w, float64(i) } }; return w, tol`,
	right: []string{`type state struct { w *tensor.Tensor; i int }
		later := asyncrt.NewLater[state](9); defer later.Close()
		for i, x := range xs {
			w = w.Sub(x); at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, state{w, i}); ok { return end.w, float64(end.i) }
		}
		if end, ok := later.Flush(); ok { return end.w, float64(end.i) }
		return w, tol`},
	wrong: map[string]string{
		"not asked at the end": `type state struct { w *tensor.Tensor; i int }
		later := asyncrt.NewLater[state](9); defer later.Close()
		for i, x := range xs {
			w = w.Sub(x); at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, state{w, i}); ok { return end.w, float64(end.i) }
		}
		later.Flush()
		return w, tol`,
		"state of another iteration": `type state struct { w *tensor.Tensor; i int }
		later := asyncrt.NewLater[state](9); defer later.Close()
		for i, x := range xs {
			w = w.Sub(x); at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, state{w, i}); ok { return w, float64(end.i) }
		}
		if end, ok := later.Flush(); ok { return end.w, float64(end.i) }
		return w, tol`,
		"the contrary": `type state struct { w *tensor.Tensor; i int }
		later := asyncrt.NewLater[state](9); defer later.Close()
		for i, x := range xs {
			w = w.Sub(x); at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return !(at.Item() < tol) }, state{w, i}); ok { return end.w, float64(end.i) }
		}
		if end, ok := later.Flush(); ok { return end.w, float64(end.i) }
		return w, tol`,
		"prints past the exit": `type state struct { w *tensor.Tensor; i int }
		later := asyncrt.NewLater[state](9); defer later.Close()
		for i, x := range xs {
			w = w.Sub(x); at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, state{w, i}); ok { return end.w, float64(end.i) }
			fmt.Fprintln(out, i)
		}
		if end, ok := later.Flush(); ok { return end.w, float64(end.i) }
		return w, tol`,
	},
}, {
	name:     "panics past an exit",
	original: `for i, x := range xs { if x.Sum().Item() < tol { return w, 1 }; w = w.Sub(x.MulScalar(rates[i])) }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{ w *tensor.Tensor }](9); defer later.Close()
		for i, x := range xs {
			if end, ok := later.Iterate(func() {
				at := later.Read(x.Sum())
				if _, ok := later.BreakIf(func() bool { return at.Item() < tol }, struct{ w *tensor.Tensor }{w}); ok { return }
				w = w.Sub(x.MulScalar(rates[i]))
			}); ok { return end.w, 1 }
		}
		if end, ok := later.Flush(); ok { return end.w, 1 }
		return w, 0`},
	wrong: map[string]string{"not contained": `later := asyncrt.NewLater[struct{ w *tensor.Tensor }](9); defer later.Close()
		for i, x := range xs {
			at := later.Read(x.Sum())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, struct{ w *tensor.Tensor }{w}); ok { return end.w, 1 }
			w = w.Sub(x.MulScalar(rates[i]))
		}
		if end, ok := later.Flush(); ok { return end.w, 1 }
		return w, 0`},
}, {
	name:     "memory",
	original: `for _, x := range xs { m.steps++; m.w = m.w.Sub(x); total += m.w.Sum().Item() }; return w, total`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		if m != nil { later.Undo(asyncrt.Var(&m.steps), asyncrt.Var(&m.w)) }
		for _, x := range xs { m.steps++; m.w = m.w.Sub(x); at := later.Read(m.w.Sum()); later.Do(func() { total += at.Item() }) }
		later.Flush(); return w, total`},
	wrong: map[string]string{
		"not given back": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { m.steps++; m.w = m.w.Sub(x); at := later.Read(m.w.Sum()); later.Do(func() { total += at.Item() }) }
		later.Flush(); return w, total`,
		"half is given back": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		if m != nil { later.Undo(asyncrt.Var(&m.w)) }
		for _, x := range xs { m.steps++; m.w = m.w.Sub(x); at := later.Read(m.w.Sum()); later.Do(func() { total += at.Item() }) }
		later.Flush(); return w, total`,
		"nil is followed": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		later.Undo(asyncrt.Var(&m.steps), asyncrt.Var(&m.w))
		for _, x := range xs { m.steps++; m.w = m.w.Sub(x); at := later.Read(m.w.Sum()); later.Do(func() { total += at.Item() }) }
		later.Flush(); return w, total`,
	},
}, {
	name:     "elements that may be the same",
	original: `for i, x := range xs { rates[i] = x.Sum().Item(); total += tols[i] }; return w, total`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { rates[i] = at.Item(); total += tols[i] }) }
		later.Flush(); return w, total`},
	wrong: map[string]string{"read too early": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { rates[i] = at.Item() }); total += tols[i] }
		later.Flush(); return w, total`},
}, {
	name: "numbers",
	original: `for _, x := range xs { norm := x.Norm().Item(); if norm > tol { x = x.MulScalar(tol / norm) }; w = w.Sub(x) }
		return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			norm := x.Norm().ItemF64(); at := later.ReadF64(norm); later.Do(func() { at.Item() })
			asyncrt.Either(norm.Gt(asyncrt.Const(tol)), func() { x = x.MulF64(asyncrt.Const(tol).Div(norm)) }, nil, &x); w = w.Sub(x)
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{
		"failure unnoticed": `for _, x := range xs {
			norm := x.Norm().ItemF64()
			asyncrt.Either(norm.Gt(asyncrt.Const(tol)), func() { x = x.MulF64(asyncrt.Const(tol).Div(norm)) }, nil, &x); w = w.Sub(x)
		}
		return w, 0`,
		"another condition": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			norm := x.Norm().ItemF64(); at := later.ReadF64(norm); later.Do(func() { at.Item() })
			asyncrt.Either(norm.Ge(asyncrt.Const(tol)), func() { x = x.MulF64(asyncrt.Const(tol).Div(norm)) }, nil, &x); w = w.Sub(x)
		}
		later.Flush(); return w, 0`,
		"operands change places": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			norm := x.Norm().ItemF64(); at := later.ReadF64(norm); later.Do(func() { at.Item() })
			asyncrt.Either(norm.Gt(asyncrt.Const(tol)), func() { x = x.MulF64(norm.Div(asyncrt.Const(tol))) }, nil, &x); w = w.Sub(x)
		}
		later.Flush(); return w, 0`,
		"variable not named": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			norm := x.Norm().ItemF64(); at := later.ReadF64(norm); later.Do(func() { at.Item() })
			asyncrt.Either(norm.Gt(asyncrt.Const(tol)), func() { x = x.MulF64(asyncrt.Const(tol).Div(norm)) }, nil); w = w.Sub(x)
		}
		later.Flush(); return w, 0`,
	},
}, {
	name:     "constants that are rounded",
	original: `s := 1.0; for _, x := range xs { v := x.Sum().Item(); if v > 0 { s = v }; w = w.MulScalar(float64(float32(s))) }; return w, 0`,
	right: []string{`s := asyncrt.Const(1); later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { s = v }, nil, &s); w = w.MulF64(s.Float32())
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{"not rounded": `s := asyncrt.Const(1); later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { s = v }, nil, &s); w = w.MulF64(s)
		}
		later.Flush(); return w, 0`},
}, {
	name:     "a whole constant that is rounded",
	original: `for _, x := range xs { v, s := x.Sum().Item(), 16777217.0; if v > 0 { s = v }; w = w.MulScalar(float64(float32(s))) }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v, s := x.Sum().ItemF64(), asyncrt.Const(16777217); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { s = v }, nil, &s); w = w.MulF64(s.Float32())
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{"rounded on one side only": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v, s := x.Sum().ItemF64(), asyncrt.Const(16777217); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { s = v.Float32() }, nil, &s); w = w.MulF64(s)
		}
		later.Flush(); return w, 0`},
}, {
	name:     "the least of constants without types",
	original: `for _, x := range xs { w = w.MulScalar(min(math.Pi, math.E, x.Sum().Item())) }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			w = w.MulF64(asyncrt.Const(math.Pi).Min(asyncrt.Const(math.E)).Min(v))
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{"another constant": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			w = w.MulF64(asyncrt.Const(math.Pi).Min(asyncrt.Const(math.Ln2)).Min(v))
		}
		later.Flush(); return w, 0`},
}, {
	name:     "infinities by their signs",
	original: `for _, x := range xs { v := x.Sum().Item(); if math.IsInf(v, -3) { w = w.Neg() } }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Eq(asyncrt.Const(math.Inf(-1))), func() { w = w.Neg() }, nil, &w)
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{"the other sign": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Eq(asyncrt.Const(math.Inf(1))), func() { w = w.Neg() }, nil, &w)
		}
		later.Flush(); return w, 0`},
}, {
	name:     "choices that a value spoils",
	original: `for i, x := range xs { v := w.Sum().Item(); if v > 0 { w = w.Add(x) }; w = w.SubScalar(v); fmt.Fprintln(out, i, w) }; return w, 0`,
	wrong: map[string]string{"not looked at": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs {
			v := w.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { w = w.Add(x) }, nil, &w)
			w = w.SubF64(v); wAt := later.Read(w); later.Do(func() { fmt.Fprintln(out, i, wAt) })
		}
		later.Flush(); return w, 0`},
}, {
	name:     "choices with numbers that memory holds",
	original: `for i, x := range xs { v := x.Sum().Item(); if v > 0 { w = w.Neg().AddScalar(tols[0]) }; fmt.Fprintln(out, i, w.Sum().Item()) }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { w = w.Neg().AddScalar(tols[0]) }, nil, &w)
			wAt := later.Read(w.Sum()); later.Do(func() { fmt.Fprintln(out, i, wAt.Item()) })
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{"another number": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { w = w.Neg().AddScalar(tols[1]) }, nil, &w)
			wAt := later.Read(w.Sum()); later.Do(func() { fmt.Fprintln(out, i, wAt.Item()) })
		}
		later.Flush(); return w, 0`},
}, {
	name:     "choices with tensors that memory holds",
	original: `y := m.w; for i, x := range xs { v := x.Sum().Item(); if v > 0 { w = w.Neg().Add(y) }; fmt.Fprintln(out, i, w.Sum().Item()) }; return w, 0`,
	wrong: map[string]string{"not looked at": `y := m.w; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { w = w.Neg().Add(y) }, nil, &w)
			wAt := later.Read(w.Sum()); later.Do(func() { fmt.Fprintln(out, i, wAt.Item()) })
		}
		later.Flush(); return w, 0`},
}, {
	name:     "choices with tensors of a list",
	original: `ys := append([]*tensor.Tensor(nil), xs...); for i, x := range xs { v := x.Sum().Item(); if v > 0 { w = w.Add(ys[i]) }; fmt.Fprintln(out, i, w.Sum().Item()) }; return w, 0`,
	wrong: map[string]string{"not looked at": `ys := append([]*tensor.Tensor(nil), xs...); later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs {
			v := x.Sum().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { w = w.Add(ys[i]) }, nil, &w)
			wAt := later.Read(w.Sum()); later.Do(func() { fmt.Fprintln(out, i, wAt.Item()) })
		}
		later.Flush(); return w, 0`},
}, { // what the side that is not taken computes was computed elsewhere, where it fails
	name:     "choices with what has been computed",
	original: `loss, t := w.Sum(), w; for range xs { if w.Norm().Item() > 0 { t = t.Neg().SubF64(w.Sum().ItemF64()) }; fmt.Fprintln(out, t.Mean().Item()); fmt.Fprintln(out, loss.Item()) }; return t, 0`,
	right: []string{`loss, t := w.Sum(), w; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for range xs {
			v := w.Norm().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { t = t.Neg().SubF64(w.Sum().ItemF64()) }, nil, &t)
			tAt, lossAt := later.Read(t.Mean()), later.Read(loss)
			later.Do(func() { fmt.Fprintln(out, tAt.Item()); fmt.Fprintln(out, lossAt.Item()) })
		}
		later.Flush(); return t, 0`},
}, {
	name:     "choices with what has been computed of what nobody has looked at",
	original: `loss, t := w.Sum(), w; for _, x := range xs { if x.Norm().Item() > 0 { t = t.Neg().SubF64(w.Sum().ItemF64()) }; fmt.Fprintln(out, t.Mean().Item()); fmt.Fprintln(out, loss.Item()) }; return t, 0`,
	wrong: map[string]string{"not looked at": `loss, t := w.Sum(), w; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			v := x.Norm().ItemF64(); at := later.ReadF64(v); later.Do(func() { at.Item() })
			asyncrt.Either(v.Gt(asyncrt.Const(0)), func() { t = t.Neg().SubF64(w.Sum().ItemF64()) }, nil, &t)
			tAt, lossAt := later.Read(t.Mean()), later.Read(loss)
			later.Do(func() { fmt.Fprintln(out, tAt.Item()); fmt.Fprintln(out, lossAt.Item()) })
		}
		later.Flush(); return t, 0`},
}, {
	name:     "parts of a list that are cleared",
	original: `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts[:len(xs)]); clear(us[:2]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
	right:    []string{`ts := append([]float64(nil), tols...); us := []float64{1, tol, 3}; part := ts[:len(xs)]; clear(us[:2]); clear(part); fmt.Fprintln(out, ts, us); return w, ts[0]`},
	wrong: map[string]string{
		"all":               `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts); clear(us[:2]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
		"more":              `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts[:len(rates)]); clear(us[:2]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
		"the end":           `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts[len(xs):]); clear(us[:2]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
		"two for one":       `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts[:2]); clear(us[:2]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
		"all that is known": `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts[:len(xs)]); clear(us); fmt.Fprintln(out, ts, us); return w, ts[0]`,
		"the known end":     `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(ts[:len(xs)]); clear(us[1:]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
		"nothing":           `ts, us := append([]float64(nil), tols...), []float64{1, tol, 3}; clear(us[:2]); fmt.Fprintln(out, ts, us); return w, ts[0]`,
	},
}, {
	name:     "maps that are cleared",
	original: `seen := map[int]float64{1: tol}; for i, x := range xs { v := x.Sum().Item(); seen[i] = v; clear(seen); fmt.Fprintln(out, len(seen), v, seen) }; return w, 0`,
	right: []string{`seen := map[int]float64{1: tol}; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { v := at.Item(); seen[i] = v; clear(seen); fmt.Fprintln(out, len(seen), v, seen) }) }
		later.Flush(); return w, 0`},
	wrong: map[string]string{
		"not cleared": `seen := map[int]float64{1: tol}; for i, x := range xs { v := x.Sum().Item(); seen[i] = v; fmt.Fprintln(out, len(seen), v, seen) }; return w, 0`,
		"too early":   `seen := map[int]float64{1: tol}; for i, x := range xs { v := x.Sum().Item(); clear(seen); seen[i] = v; fmt.Fprintln(out, len(seen), v, seen) }; return w, 0`,
	},
}, {
	name:     "lists that others are copied over",
	original: `ys, zs := [][]float64{{1}, {2}}, make([][]float64, len(xs)); copy(ys, zs); fmt.Fprintln(out, len(ys[0])); return w, 0`,
	right:    []string{`ys, zs := [][]float64{{1}, {2}}, make([][]float64, len(xs)); copy(ys[:2], zs); fmt.Fprintln(out, len(ys[0])); return w, 0`},
	wrong:    map[string]string{"not copied": `ys, zs := [][]float64{{1}, {2}}, make([][]float64, len(xs)); _ = zs; fmt.Fprintln(out, len(ys[0])); return w, 0`},
}, {
	name:     "one rounding",
	original: `s := 0.0; for _, x := range xs { a := x.Sum().Item(); s = a*tol + 1; w = w.MulScalar(s) }; return w, 0`,
	wrong: map[string]string{"two": `later := asyncrt.NewLater[struct{}](9); defer later.Close(); s := asyncrt.Const(0.0)
		for _, x := range xs {
			a := x.Sum().ItemF64(); at := later.ReadF64(a); later.Do(func() { at.Item() })
			s = a.Mul(asyncrt.Const(tol)).Add(asyncrt.Const(1)); w = w.MulF64(s)
		}
		later.Flush(); return w, 0`},
}, {
	name:     "rows",
	original: `for j := range rates { if x := w.Row(j).Sum(); x.Item() > rates[j] { total++ } }; return w, total`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		rows := later.Rows(len(rates), func(row asyncrt.RowOf) *tensor.Tensor { return row(w).Sum() })
		later.Do(func() { for j := range rates { if rows.Item(j) > rates[j] { total++ } } })
		later.Flush(); return w, total`},
	wrong: map[string]string{
		"another row": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		rows := later.Rows(len(rates), func(row asyncrt.RowOf) *tensor.Tensor { return row(w).Sum() })
		later.Do(func() { for j := range rates { if rows.Item(0) > rates[j] { total++ } } })
		later.Flush(); return w, total`,
		"of something that changes": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		was := w
		rows := later.Rows(len(rates), func(row asyncrt.RowOf) *tensor.Tensor { return row(w).Sum() })
		w = w.Neg()
		later.Do(func() { for j := range rates { if rows.Item(j) > rates[j] { total++ } } })
		later.Flush(); return was, total`,
	},
}, {
	name:     "lists in a list",
	original: `rows := [][]float64{nil, nil}; for i, x := range xs { k := int(tols[i]) & 1; rows[k] = append(rows[k], x.Sum().Item()); fmt.Fprintln(out, len(rows[0])) }; fmt.Fprintln(out, rows); return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close(); rows := [][]float64{nil, nil}
		for i, x := range xs { k := int(tols[i]) & 1; at := later.Read(x.Sum()); later.Do(func() { rows[k] = append(rows[k], at.Item()); fmt.Fprintln(out, len(rows[0])) }) }
		later.Flush(); fmt.Fprintln(out, rows); return w, 0`},
	wrong: map[string]string{"too early": `later := asyncrt.NewLater[struct{}](9); defer later.Close(); rows := [][]float64{nil, nil}
		for i, x := range xs { k := int(tols[i]) & 1; at := later.Read(x.Sum()); n := len(rows[0]); later.Do(func() { rows[k] = append(rows[k], at.Item()); fmt.Fprintln(out, n) }) }
		later.Flush(); fmt.Fprintln(out, rows); return w, 0`},
}, {
	name:     "as many rows as there are",
	original: `n := 0; for _, x := range xs { n = int(x.Sum().ItemInt()); for j := 0; j < n; j++ { fmt.Fprintln(out, w.Row(j)) } }; return w, 0`,
	wrong: map[string]string{"before it is known": `n := 0; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			at := later.Read(x.Sum()); later.Do(func() { n = int(at.ItemInt()) })
			rows := later.Rows(n, func(row asyncrt.RowOf) *tensor.Tensor { return row(w) })
			later.Do(func() { for j := 0; j < n; j++ { fmt.Fprintln(out, rows.At(j)) } })
		}
		later.Flush(); return w, 0`},
}, {
	name:     "errors",
	original: `for _, x := range xs { err := fmt.Errorf("%v", x.Sum().Item()); text := err.Error(); _ = text }; return w, 0`,
	wrong: map[string]string{"of nil": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			var err error
			at := later.Read(x.Sum()); later.Do(func() { err = fmt.Errorf("%v", at.Item()) })
			text := err.Error(); _ = text
		}
		later.Flush(); return w, 0`},
}, {
	name:     "loops that end while an exit waits",
	original: `n := 0; for n < 50 { w = w.MulScalar(tol); n++; if w.Norm().Item() < tol { break } }; return w, float64(n)`,
	right: []string{`n := 0; later := asyncrt.NewLater[struct { w *tensor.Tensor; n int }](9); defer later.Close()
		for n < 50 {
			w = w.MulScalar(tol); n++; at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, struct { w *tensor.Tensor; n int }{w, n}); ok { w, n = end.w, end.n; break }
		}
		if end, ok := later.Flush(); ok { w, n = end.w, end.n }
		return w, float64(n)`},
	wrong: map[string]string{"not asked": `n := 0; later := asyncrt.NewLater[struct { w *tensor.Tensor; n int }](9); defer later.Close()
		for n < 50 {
			w = w.MulScalar(tol); n++; at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol }, struct { w *tensor.Tensor; n int }{w, n}); ok { w, n = end.w, end.n; break }
		}
		return w, float64(n)`},
}, {
	name:     "values that decide whether a loop goes on",
	original: `for i := 0; total < tol && i < 12; i++ { w = w.MulScalar(0.5); total += w.Norm().Item(); if w.Norm().Item() < 1 { return w, 1 } }; return w, total`,
	wrong: map[string]string{"too early": `later := asyncrt.NewLater[struct{ w *tensor.Tensor }](9); defer later.Close()
		for i := 0; total < tol && i < 12; i++ {
			w = w.MulScalar(0.5); at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { total += at.Item(); return at.Item() < 1 }, struct{ w *tensor.Tensor }{w}); ok { return end.w, 1 }
		}
		if end, ok := later.Flush(); ok { return end.w, 1 }
		return w, total`},
}, {
	name:     "operations that may be mistakes",
	original: `for i, x := range xs { if i > 2 && x.MatMul(w).Sum().Item() > 0 { total++ } }; return w, total`,
	wrong: map[string]string{"not always": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.MatMul(w).Sum()); later.Do(func() { if i > 2 && at.Item() > 0 { total++ } }) }
		later.Flush(); return w, total`},
}, {
	name:     "two failures",
	original: `for _, x := range xs { fmt.Fprintln(out, x.Sum().Item(), x.MatMul(w).Sum().Item()) }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			at := later.Read(x.Sum()); later.Do(func() { at.Item() })
			at2 := later.Read(x.MatMul(w).Sum()); later.Do(func() { fmt.Fprintln(out, at.Item(), at2.Item()) })
		}
		later.Flush(); return w, 0`},
	wrong: map[string]string{"the second is seen": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs {
			at := later.Read(x.Sum())
			at2 := later.Read(x.MatMul(w).Sum()); later.Do(func() { fmt.Fprintln(out, at.Item(), at2.Item()) })
		}
		later.Flush(); return w, 0`},
}, {
	name:     "an index that there is not",
	original: `for _, x := range xs { w = w.Add(m.w.Row(int(x.ItemInt()))) }; return w, 0`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { i := x.I64(); at := later.ReadI64(i); later.Do(func() { m.w.Row(int(at.ItemInt())) }); w = w.Add(m.w.RowI64(i)) }
		later.Flush(); return w, 0`},
	wrong: map[string]string{"selected": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { i := x.I64(); at := later.ReadI64(i); later.Do(func() { at.ItemInt() }); w = w.Add(m.w.RowI64(i)) }
		later.Flush(); return w, 0`},
}, {
	name:     "constants that are reached late",
	original: `n := 0; for { w = w.MulScalar(tol); n++; if w.Norm().Item() < tol || n > 60 { break } }; return w, float64(n)`,
	right: []string{`n := 0; later := asyncrt.NewLater[struct { w *tensor.Tensor; n int }](9); defer later.Close()
		for {
			w = w.MulScalar(tol); n++; nAt := n; at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol || nAt > 60 }, struct { w *tensor.Tensor; n int }{w, n}); ok { w, n = end.w, end.n; break }
		}
		return w, float64(n)`},
	wrong: map[string]string{"too early": `n := 0; later := asyncrt.NewLater[struct { w *tensor.Tensor; n int }](9); defer later.Close()
		for {
			w = w.MulScalar(tol); n++; at := later.Read(w.Norm())
			if end, ok := later.BreakIf(func() bool { return at.Item() < tol || n > 60 }, struct { w *tensor.Tensor; n int }{w, n}); ok { w, n = end.w, end.n; break }
		}
		return w, float64(n)`},
}, {
	name:     "a failure before a panic of the host",
	original: `for i, x := range xs { total += x.Sum().Item(); total += rates[i] }; return w, total`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { total += at.Item() }); rate := rates[i]; later.Do(func() { total += rate }) }
		later.Flush(); return w, total`},
	wrong: map[string]string{"seen after it": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); rate := rates[i]; later.Do(func() { total += at.Item(); total += rate }) }
		later.Flush(); return w, total`},
}, {
	name:     "generators of the host",
	original: `for range 9 { x := xs[r.IntN(len(xs))]; total += x.Sum().Item() }; return w, total`,
	wrong: map[string]string{"drawn from after a failure": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for range 9 { x := xs[r.IntN(len(xs))]; at := later.Read(x.Sum()); later.Do(func() { total += at.Item() }) }
		later.Flush(); return w, total`},
}, {
	name:     "structs with other tags",
	original: `for _, x := range xs { w = w.MulScalar(float64((*tagged)(m).steps)); m.steps = int(x.Sum().ItemInt()) }; return w, 0`,
	wrong: map[string]string{"taken for others": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { w = w.MulScalar(float64((*tagged)(m).steps)); at := later.Read(x.Sum()); later.Do(func() { m.steps = int(at.ItemInt()) }) }
		later.Flush(); return w, 0`},
}, {
	name:     "fields that lead to what a parameter leads to",
	original: `for i, x := range xs { w = w.MulScalar(m.rates[0]); rates[0] = x.Sum().Item(); fmt.Fprintln(out, i) }; return w, 0`,
	wrong: map[string]string{"taken for others": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { w = w.MulScalar(m.rates[0]); at := later.Read(x.Sum()); later.Do(func() { rates[0] = at.Item(); fmt.Fprintln(out, i) }) }
		later.Flush(); return w, 0`},
}, {
	name:     "parts of a slice that are given back",
	original: `a, b := xs[:4], xs[4:8]; for i, x := range xs { a[0] = w.MulScalar(tol); b[1] = w.AddScalar(1); w = a[0].Add(b[1]); total += x.Sum().Item(); fmt.Fprintln(out, i, total) }; return w, total`,
	right: []string{`a, b := xs[:4], xs[4:8]; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		later.Undo(asyncrt.Elems(a), asyncrt.Elems(b))
		for i, x := range xs {
			a[0] = w.MulScalar(tol); b[1] = w.AddScalar(1); w = a[0].Add(b[1]); at := later.Read(x.Sum())
			later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) })
		}
		later.Flush(); return w, total`},
	wrong: map[string]string{"one is not": `a, b := xs[:4], xs[4:8]; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		later.Undo(asyncrt.Elems(a))
		for i, x := range xs {
			a[0] = w.MulScalar(tol); b[1] = w.AddScalar(1); w = a[0].Add(b[1]); at := later.Read(x.Sum())
			later.Do(func() { total += at.Item(); fmt.Fprintln(out, i, total) })
		}
		later.Flush(); return w, total`},
}, {
	name:     "parameters and generators",
	original: `for _, x := range xs { y := p.Value().Mul(x); total += y.Sum().Item(); p.Set(y) }; return w, total`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { y := p.Value().Mul(x); at := later.Read(y.Sum()); later.Do(func() { total += at.Item() }); p.Set(y) }
		later.Flush(); return w, total`},
	wrong: map[string]string{"read too late": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { y := p.Value().Mul(x); later.Do(func() { total += p.Value().Mul(x).Sum().Item() }); p.Set(y) }
		later.Flush(); return w, total`},
}, {
	name: "fields of elements",
	original: `rows := make([]row, 3); var pair [2]row
		for i, x := range xs { rows[i%3].sum += x.Sum().Item(); pair[i%2].n++; p := &rows[i%3]; p.n++ }
		fmt.Fprintln(out, rows, pair); return w, rows[0].sum`,
	right: []string{`rows := make([]row, 3); var pair [2]row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { rows[i%3].sum += at.Item() }); pair[i%2].n++; later.Do(func() { p := &rows[i%3]; p.n++ }) }
		later.Flush(); fmt.Fprintln(out, rows, pair); return w, rows[0].sum`},
	wrong: map[string]string{
		"another element": `rows := make([]row, 3); var pair [2]row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { rows[(i+1)%3].sum += at.Item() }); pair[i%2].n++; later.Do(func() { p := &rows[i%3]; p.n++ }) }
		later.Flush(); fmt.Fprintln(out, rows, pair); return w, rows[0].sum`,
		"not in the array": `rows := make([]row, 3); var pair [2]row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { rows[i%3].sum += at.Item() }); q := pair[i%2]; q.n++; later.Do(func() { p := &rows[i%3]; p.n++ }) }
		later.Flush(); fmt.Fprintln(out, rows, pair); return w, rows[0].sum`,
		"not through the pointer": `rows := make([]row, 3); var pair [2]row; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { rows[i%3].sum += at.Item() }); pair[i%2].n++; later.Do(func() { p := rows[i%3]; p.n++ }) }
		later.Flush(); fmt.Fprintln(out, rows, pair); return w, rows[0].sum`,
	},
}, {
	name: "arrays behind pointers, keys, method expressions",
	original: `names := []string{1: "b", 2: "c"}; a := &[4]float64{2: 1}
		for i, x := range xs { a[i%4] += (*tensor.Tensor).Item(x.Sum()); fmt.Fprintln(out, names[i%3]) }
		for _, v := range a { total += v }
		return w, total`,
	right: []string{`names := []string{1: "b", 2: "c"}; a := &[4]float64{2: 1}; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { a[i%4] += at.Item() }); later.Do(func() { fmt.Fprintln(out, names[i%3]) }) }
		later.Flush(); for _, v := range a { total += v }
		return w, total`},
	wrong: map[string]string{"read too early": `names := []string{1: "b", 2: "c"}; a := &[4]float64{2: 1}; later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { a[i%4] += at.Item() }); later.Do(func() { fmt.Fprintln(out, names[i%3]) }) }
		for _, v := range a { total += v }
		later.Flush(); return w, total`},
}, {
	name:     "function literals that are handed on",
	original: `n := 0; wg.Go(func() { n++ }); for _, x := range xs { fmt.Fprintln(out, x.Sum().Item()) }; wg.Wait(); return w, float64(n)`,
	right: []string{`n := 0; wg.Go(func() { n++ }); later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { at := later.Read(x.Sum()); later.Do(func() { fmt.Fprintln(out, at.Item()) }) }
		later.Flush(); wg.Wait(); return w, float64(n)`},
	wrong: map[string]string{"used before": `n := 0; wg.Go(func() { n++ }); later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for _, x := range xs { at := later.Read(x.Sum()); later.Do(func() { fmt.Fprintln(out, at.Item()) }) }
		later.Flush(); v := float64(n); wg.Wait(); return w, v`},
}, {
	name:     "nil pointers and failures on the left",
	original: `for i, x := range xs { m.steps += int(x.Sum().Item()); rates[i%2] = x.Mean().Item() }; return w, total`,
	right: []string{`later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { m.steps += int(at.Item()) }); at2 := later.Read(x.Mean()); later.Do(func() { rates[i%2] = at2.Item() }) }
		later.Flush(); return w, total`},
	wrong: map[string]string{"an index that can't fail": `later := asyncrt.NewLater[struct{}](9); defer later.Close()
		for i, x := range xs { at := later.Read(x.Sum()); later.Do(func() { m.steps += int(at.Item()) }); at2 := later.Read(x.Mean()); later.Do(func() { if v := at2.Item(); i%2 < len(rates) { rates[i%2] = v } }) }
		later.Flush(); return w, total`},
}}

const header = `package p

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var _, _ = fmt.Fprintln, math.Inf
var _ = asyncrt.WaitAll
var _ = slices.Max[[]int]

var wg sync.WaitGroup

type row struct {
	sum float64
	n   int
}

type model struct {
	w     *tensor.Tensor
	steps int
	rates []float64
}

type tagged struct {
	w     *tensor.Tensor
	steps int ` + "`json:\"steps\"`" + `
	rates []float64
}
`

// TestSame: what does the same is the same, and what differs in one way is not.
// aliases are ways in which two expressions lead to one place: what is stored by the one is seen by the other.
var aliases = []struct{ name, made, one, other string }{
	{"a pointer in an array", "a := &row{}; c := [2]*row{1: a}", "a.sum", "c[1].sum"},
	{"a pointer in an array, at an index that is not known", "a := &row{}; c := [2]*row{a, a}", "a.sum", "c[len(xs)%2].sum"},
	{"a list in an array", "a := []float64{1}; c := [2][]float64{nil, a}", "a[0]", "c[1][0]"},
	{"a list in an array in an array", "a := []float64{1}; c := [2][1][]float64{{a}, {a}}", "a[0]", "c[1][0][0]"},
	{"a list in a struct in an array", "type part struct { ts []float64 }; a := []float64{1}; c := [2]part{{a}, {nil}}", "a[0]", "c[0].ts[0]"},
	{"a list in a list", "a := []float64{1}; c := append([][]float64{}, a)", "a[0]", "c[0][0]"},
	{"a list in a map", "a := []float64{1}; c := map[string][]float64{\"a\": a}", "a[0]", "c[\"a\"][0]"},
	{"a list that is put into a map", "a := []float64{1}; c := map[int][]float64{}; c[2] = a", "a[0]", "c[2][0]"},
	{"a list in a map from which another is deleted", "a := []float64{1}; c := map[int][]float64{1: a, 2: nil}; delete(c, 2)", "a[0]", "c[1][0]"},
	{"a list that is looked up", "a := []float64{1}; b := map[int][]float64{1: a}; c, _ := b[1]", "a[0]", "c[0]"},
	{"a map in a list", "a := map[int]float64{}; c := []map[int]float64{a}", "a[1]", "c[0][1]"},
	{"a map in a struct in a list", "type part struct { m map[int]float64 }; a := map[int]float64{}; c := []part{{a}}", "a[1]", "c[0].m[1]"},
	{"a map in a map", "a := map[int]float64{}; c := map[string]map[int]float64{\"a\": a}", "a[1]", "c[\"a\"][1]"},
	{"a list among variable arguments", "a := []float64{1}; f := func(ts ...[]float64) [][]float64 { return ts }; c := f(a, a)", "a[0]", "c[1][0]"},
	{"a pointer to an element of an array", "a := [2]float64{}; c := &a[len(xs)%2]", "a[1]", "*c"},
	{"a part of a list", "a := []float64{1, 2}; c := a[1:]", "a[1]", "c[0]"},

	{"a list in an array, at an index that is not known", "a := []float64{1}; c := [2][]float64{a, a}[len(xs)%2]", "a[0]", "c[0]"},
	{"a list that is put into an array at an index that is not known", "a := []float64{1}; var c [2][]float64; c[len(xs)%2] = a", "a[0]", "c[1][0]"},
	{"a list in a list, at an index that is not known", "a := []float64{1}; c := [][]float64{a, a}[len(xs)%2]", "a[0]", "c[0]"},
	{"a list in a map, at a key that is not known", "a := []float64{1}; c := map[int][]float64{1: a, 2: a}", "a[0]", "c[len(xs)][0]"},
	{"a list in a map from which one is deleted", "a := []float64{1}; c := map[int][]float64{1: a}; delete(c, len(xs))", "a[0]", "c[1][0]"},
	{"a list that is appended after others", "a := []float64{1}; c := append(make([][]float64, len(xs)), [][]float64{a}...)", "a[0]", "c[len(xs)][0]"},

	{"a list that is appended to within its capacity", "a := make([]float64, 1, 4); c := append(a, 2)", "a[0]", "c[0]"},
	{"a list that is appended within a capacity", "b := []float64{1}; a := make([][]float64, 1, 4); d := append(a, b); c := a[:2]; _ = d", "b[0]", "c[1][0]"},

	// Here the checker loses sight of it, and has to say so.
	{"unknown: a list in a map that is ranged over", "a := []float64{1}; var c []float64; for _, b := range map[int][]float64{1: a} { c = b }", "a[0]", "c[0]"},
	{"unknown: a list to which others are appended", "a := []float64{1}; c := append([][]float64{a}, make([][]float64, len(xs))...)", "a[0]", "c[0][0]"},
	{"unknown: a list that is appended to a part", "a := []float64{1}; b := make([][]float64, len(xs)); c := append(b[:len(xs):len(xs)], a)", "a[0]", "c[len(xs)][0]"},
	{"unknown: a list that is copied", "a := []float64{1}; c := make([][]float64, len(xs)); copy(c, [][]float64{a})", "a[0]", "c[0][0]"},
	{"unknown: a list that is sorted", "a := []float64{1}; c := [][]float64{a, a}; slices.Reverse(c)", "a[0]", "c[0][0]"},
}

// A value that is stored in each iteration is not seen by what runs after the loop has gone on.
func TestAliases(t *testing.T) {
	var text strings.Builder
	functionsOf := func(name, made, stored, seen string) {
		loop := made + "; later := asyncrt.NewLater[struct{}](9); defer later.Close(); for i, x := range xs { at := later.Read(x.Sum()); "
		stored, late := stored+" = float64(i); ", "fmt.Fprintln(out, "+seen+", at.Item()) "
		write(&text, "original"+name, made+"; for i, x := range xs { s := x.Sum(); "+stored+"fmt.Fprintln(out, "+seen+", s.Item()) }; return w, 0")
		write(&text, "right"+name, loop+"later.Do(func() { "+stored+late+"}) }; later.Flush(); return w, 0")
		write(&text, "wrong"+name, loop+stored+"later.Do(func() { "+late+"}) }; later.Flush(); return w, 0")
	}
	for i, a := range aliases {
		functionsOf(fmt.Sprint(i), a.made, a.one, a.other)
		functionsOf(fmt.Sprint(i, "back"), a.made, a.other, a.one)
	}
	program, functions := programOf(t, text.String())
	for i, a := range aliases {
		for _, name := range []string{fmt.Sprint(i), fmt.Sprint(i, "back")} {
			original := functions["original"+name]
			right, wrong := program.Same(original, functions["right"+name]), program.Same(original, functions["wrong"+name])
			if strings.HasPrefix(a.name, "unknown: ") {
				if wrong == nil || right != nil && !errors.Is(right, verify.Unknown) {
					t.Errorf("%s, %s: the right form is %v, the wrong one is %v", a.name, name, right, wrong)
				}
			} else if right != nil || wrong == nil || errors.Is(wrong, verify.Unknown) {
				t.Errorf("%s, %s: the right form is %v, the wrong one is %v", a.name, name, right, wrong)
			}
		}
	}
}

// write adds a function to a program.
func write(text *strings.Builder, name, body string) {
	fmt.Fprintf(text, "\nfunc %s(out io.Writer, m *model, r *rand.Rand, p *nn.Param, w *tensor.Tensor, xs []*tensor.Tensor, rates, tols []float64, tol float64) (*tensor.Tensor, float64) {\ntotal := 0.0\n_ = total\n%s\n}\n", name, body)
}

// programOf loads functions that begin with the header.
func programOf(t *testing.T, text string) (*verify.Program, map[string]*verify.Func) {
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "p.go"), []byte(header+text))
	loaded, err := packages.Load(&packages.Config{Dir: dir, Mode: packages.LoadSyntax}, ".")
	if err != nil {
		t.Fatal(err)
	}
	pkg := loaded[0]
	for _, err := range pkg.Errors {
		t.Fatal(err)
	}
	functions := make(map[string]*verify.Func)
	for _, d := range pkg.Syntax[0].Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			functions[fn.Name.Name] = &verify.Func{Decl: fn, Info: pkg.TypesInfo, Fset: pkg.Fset}
		}
	}
	return verify.NewProgram(func(*types.Func) *verify.Func { return nil }, func(types.Object) (load.Effects, bool) { return load.Effects{}, false }), functions
}

func TestSame(t *testing.T) {
	var text strings.Builder
	wrong := make(map[string]string) // by the names of functions
	for i, p := range pairs {
		write(&text, fmt.Sprintf("original%d", i), p.original)
		for k, body := range p.right {
			write(&text, fmt.Sprintf("right%dx%d", i, k), body)
		}
		for name, body := range p.wrong {
			fn := fmt.Sprintf("wrong%dx%d", i, len(wrong))
			wrong[fn] = p.name + ": " + name
			write(&text, fn, body)
		}
	}
	write(&text, "captured", "c := asyncrt.Capture(func(in ...*tensor.Tensor) []*tensor.Tensor { return in }); return c.Run(w)[0], 0")
	program, functions := programOf(t, text.String())
	captured := functions["captured"] // what Run calls is not known
	if err := program.Same(captured, captured); !errors.Is(err, verify.Unknown) || !strings.Contains(err.Error(), "calls (*github.com/asyncgen/asyncgen/runtime/tensor.Captured).Run") {
		t.Errorf("a captured step: %v", err)
	}
	for i, p := range pairs {
		original := functions[fmt.Sprintf("original%d", i)]
		if err := program.Same(original, original); err != nil {
			t.Errorf("%s: the original is not the same as itself: %v", p.name, err)
		}
		for k := range p.right {
			if err := program.Same(original, functions[fmt.Sprintf("right%dx%d", i, k)]); err != nil {
				t.Errorf("%s, the right form %d: %v", p.name, k, err)
			}
		}
		for name, fn := range functions {
			if strings.HasPrefix(name, fmt.Sprintf("wrong%dx", i)) {
				if err := program.Same(original, fn); err == nil || errors.Is(err, verify.Unknown) {
					t.Errorf("%s: %v", wrong[name], err)
				}
			}
		}
	}
}
