package fuzz

import (
	"context"
	"fmt"
	"slices"
)

// maxCandidates bounds how many smaller programs are built at once.
const maxCandidates = 60

// shrink leaves out statements of a program that differs, as long as it still does.
func shrink(ctx context.Context, c Config, p *program) (Difference, error) {
	var found Difference
	for {
		candidates := smaller(p)
		if len(candidates) > maxCandidates {
			candidates = candidates[:maxCandidates]
		}
		for i, q := range candidates {
			q.name = fmt.Sprintf("K%03d", i)
		}
		candidates = append(candidates, p)
		p.name = "Same"
		r, err := tryAll(ctx, c, candidates)
		if err != nil {
			return found, err
		}
		var least *program
		for _, d := range r.Different {
			if q := d.program; least == nil || q.statements() < least.statements() {
				least, found = q, d
			}
		}
		if least == nil || least == p {
			return found, nil
		}
		p = least
	}
}

// statements is how many p has.
func (p *program) statements() (n int) {
	for _, list := range p.lists() {
		n += len(*list)
	}
	return n
}

// smaller returns the programs that p is without some of its statements, or with
// what is in a compound statement in the place of it; the ones that lack most first.
func smaller(p *program) []*program {
	var all []*program
	try := func(list, from, to int, inner []*stmt) {
		q := p.clone()
		at := q.lists()[list]
		if slices.ContainsFunc((*at)[from:to], func(s *stmt) bool { return s.stays }) {
			return
		}
		*at = slices.Replace(slices.Clone(*at), from, to, cloneAll(inner)...)
		if q.isValid() && q.ends() {
			all = append(all, q)
		}
	}
	for l, list := range p.lists() {
		for n := len(*list); n > 0; n /= 2 {
			for from := 0; from+n <= len(*list); from += max(1, n/2) {
				try(l, from, from+n, nil)
			}
		}
		for i, s := range *list {
			for _, inner := range s.blocks() {
				if s.form != sFunc && s.form != sDefer && len(*inner) > 0 {
					try(l, i, i+1, *inner)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *program) int { return a.statements() - b.statements() })
	return all
}

// isValid reports whether every variable is declared where it is used and is the
// one that its name stands for there, and every jump has a loop around it.
func (p *program) isValid() bool {
	c := &checker{}
	for _, v := range p.params {
		c.scope = append(c.scope, v)
	}
	c.block(p.body)
	for _, h := range p.helpers {
		c.scope, c.loops = slices.Clone(h.params), nil
		c.block(h.body)
	}
	return !c.wrong
}

// A checker follows scopes as the compiler does.
type checker struct {
	scope []*variable
	loops []string // labels of the loops around, innermost last
	wrong bool
}

func (c *checker) block(list []*stmt) {
	scope := len(c.scope)
	for _, s := range list {
		c.stmt(s)
	}
	c.scope = c.scope[:scope]
}

func (c *checker) expr(x *expr) {
	if x.v != nil {
		i := len(c.scope) - 1
		for i >= 0 && c.scope[i].name != x.v.name {
			i--
		}
		c.wrong = c.wrong || i < 0 || c.scope[i] != x.v
	}
	for _, a := range x.args {
		c.expr(a)
	}
}

func (c *checker) stmt(s *stmt) {
	scope, loops := len(c.scope), c.loops
	if s.init != nil {
		c.stmt(s.init)
	}
	for _, x := range slices.Concat(s.rhs, s.lhs) {
		c.expr(x)
	}
	if s.post != nil {
		c.stmt(s.post)
	}
	switch s.form {
	case sDeclare, sFunc, sTalk:
		if s.fn != nil {
			c.loops = nil
			c.scope = append(c.scope, s.fn.params...)
			c.block(s.fn.body)
			c.scope, c.loops = c.scope[:scope], loops
		}
		c.scope = append(c.scope, s.vars...)
		return
	case sBreak, sContinue:
		c.wrong = c.wrong || len(c.loops) == 0 || s.text != "" && !slices.Contains(c.loops, s.text)
	case sRange, sCount, sHead, sWhile, sEndless, sSequence:
		c.loops = append(slices.Clone(loops), s.text)
		c.scope = append(c.scope, s.vars...)
	case sDefer:
		c.loops = nil
	}
	for _, b := range s.blocks() {
		c.block(*b)
	}
	c.scope, c.loops = c.scope[:scope], loops
}
