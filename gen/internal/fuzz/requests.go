package fuzz

import "fmt"

// Programs that have someone to talk to: what they have been told must have
// been said before they wait for the answer.

// requests makes a statement that waits for the outside, in one of the ways in which users write that.
func (g *maker) requests() []*stmt {
	if g.noJumps || g.noCells {
		return nil
	}
	var list []*stmt
	if g.chance(2) {
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{literal(tString, "?"), g.number()}})
	}
	switch g.choose(6) {
	case 0:
		return append(list, call(apply(opAsk)))
	case 1:
		return append(list, declaration(g.declare(g.fresh(tFloat)), apply(opAsk)))
	case 2: // line, err := in.ReadString('\n')
		line, err := g.fresh(tString), &variable{name: "_", kind: tError}
		if g.chance(3) {
			err = g.declare(g.fresh(tError))
		}
		list = append(list, &stmt{form: sDeclare, vars: []*variable{line, err}, rhs: []*expr{apply(opLine)}})
		return append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{literal(tString, "told"), of(g.declare(line))}})
	case 3:
		return append(list, g.talk())
	case 4:
		return append(list, g.scans()...)
	}
	// The answer goes back to the device.
	v := g.fresh(tFloat)
	list = append(list, declaration(v, apply(opAsk)), assign(of(g.local(tMat)), "=", apply(operationOf("$0.AddScalar($1)", tMat), g.variable(tMat), of(v))))
	g.declare(v)
	return list
}

// talk sends a number to a peer and receives its answer.
func (g *maker) talk() *stmt {
	x := g.number()
	return &stmt{form: sTalk, vars: []*variable{g.declare(g.fresh(tFloat))}, rhs: []*expr{x}}
}

// scans makes a loop over what is left of the input.
func (g *maker) scans() []*stmt {
	if len(g.loops) >= 3 || g.depth > 4 {
		return nil
	}
	g.count++
	scope, here, inSwitch := len(g.scope), g.here, g.inSwitch
	v := g.declare(g.fresh(tScanner))
	s := &stmt{form: sWhile, text: fmt.Sprintf("loop%d", g.count), rhs: []*expr{apply(opScan, of(v))}}
	line := g.declare(g.fresh(tString))
	s.body = one(declaration(line, apply(opText, of(v))))
	s.body[0].stays = true
	g.here, g.inSwitch = len(g.scope)-1, false
	g.loops = append(g.loops, s)
	g.depth++
	if g.chance(2) {
		scaled := apply(operationOf("float64($0)", tFloat), apply(opLength, of(line)))
		s.body = append(s.body, assign(of(g.local(tMat)), "=", apply(operationOf("$0.MulScalar($1)", tMat), g.variable(tMat), scaled)))
	}
	for range 1 + g.choose(3) {
		s.body = append(s.body, g.stmt()...)
	}
	s.body = append(s.body, &stmt{form: sPrint, text: outWriter, rhs: []*expr{of(line), g.number()}})
	g.depth--
	g.loops = g.loops[:len(g.loops)-1]
	g.scope, g.here, g.inSwitch = g.scope[:scope], here, inSwitch
	return []*stmt{declaration(v, apply(opScanner)), s}
}
