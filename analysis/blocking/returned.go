package blocking

import "github.com/asyncgen/asyncgen/analysis/internal/syntax"

// The functions among the results of another function: a step, an iterator, or a pair to add to a sum and to read it.
//
//	add, value := smooth(0.9)
//	value() // does what the second result of smooth does

// returnedFuncs returns the summaries of the functions among the results of f, in order. It returns nil if there are
// none, if they are not always the same, or if nothing is known of them. Results of theirs are not followed.
func returnedFuncs(pkg *Package, f *Func) (list []Summary) {
	known := false
	for i := range f.Sig.Results().Len() {
		if !syntax.IsFunc(f.Sig.Results().At(i).Type()) {
			continue
		}
		if len(f.Returns) != 1 || len(f.Returns[0].Results) != f.Sig.Results().Len() {
			return nil
		}
		s := *pkg.FuncValue(f.Returns[0].Results[i], 0).Summary()
		s.Func, s.More = nil, nil
		known = known || !s.isZero()
		list = append(list, s)
	}
	if !known {
		return nil
	}
	return list
}

// returnedFunc is the summary of the function that is result number i of c, or nil.
func (c *Call) returnedFunc(i int) *Summary {
	s := c.Summary()
	if s.Func == nil || c.Callee == nil {
		return s.Func
	}
	no := 0 // among the functions
	for v := range c.Callee.Signature().Results().Variables() {
		if i--; i < 0 {
			break
		}
		if syntax.IsFunc(v.Type()) {
			no++
		}
	}
	switch {
	case no == 0:
		return s.Func
	case no <= len(s.More):
		return &s.More[no-1]
	}
	return nil
}

// at is v, if that is what a call returned, for result number i of the call.
func (v FuncValue) at(i int) FuncValue {
	if v.maker != nil {
		v.result = i
	}
	return v
}

// pulls reports whether c takes the next element of an iterator that enqueues work for it: next, _ := iter.Pull(seq).
func (c *Call) pulls() bool {
	if c.Maker == nil || c.Maker.Callee == nil || len(c.Maker.Expr.Args) != 1 {
		return false
	}
	if name := c.Maker.Callee.Origin().FullName(); name != "iter.Pull" && name != "iter.Pull2" {
		return false
	}
	seq := c.In.Package.Calls[syntax.AsCall(c.Maker.Expr.Args[0])]
	return seq != nil && seq.Summary().Func != nil && seq.Summary().Func.Enqueues && c.In.Package.ResultsOf(c).Len() > 0
}
