// Package facts says what functions of the standard library do, as far as it matters to code that
// runs earlier or later than it did. It is a table, std.txt, with one entry for each function and
// method; what it does not list is unknown.
//
// An entry has words for what the function does, and one for each of its slots: the receiver and
// the parameters through which memory can be reached. Nothing is left to be guessed: a test demands
// the word of every slot, and another calls the functions with arguments that notice what happens
// to them.
package facts

import (
	_ "embed"
	"fmt"
	"go/types"
	"slices"
	"strings"
	"sync"
)

// Does says what a function does besides what its slots say.
type Does uint32

// What functions do. A function that does nothing is one of its arguments and of what they lead to.
const (
	Total  Does = 1 << iota // works for all arguments: it does not panic
	Fresh                   // its result leads to memory that nothing else leads to
	Lazy                    // its result is an iterator, which does what the slots say whenever it is ranged over
	Prints                  // writes to the outside
	Stamps                  // the same, with the time of the call
	Stream                  // reads and changes the state of a stream
	Env                     // asks the process: environment, working directory
	Setenv                  // changes the process
	Clock                   // reads the clock
	Random                  // draws from a random generator of the host that nobody seeded
	Global                  // draws from a random generator that the program may have seeded
	Source                  // draws from a random generator that it is given
	Polls                   // looks at what others change: a context, an atomic variable
	Blocks                  // may wait for the outside; nothing is said of its slots
	Ends                    // ends the function, the goroutine or the process
	Exits                   // the same, and does nothing else
)

var does = map[string]Does{
	"total": Total, "fresh": Fresh, "lazy": Lazy, "prints": Prints, "stamps": Stamps, "stream": Stream, "env": Env, "setenv": Setenv,
	"clock": Clock, "random": Random, "global": Global, "source": Source, "polls": Polls, "blocks": Blocks, "ends": Ends, "exits": Exits,
}

// Word says what a function does with a slot.
type Word uint16

// What is done with a slot.
const (
	Ignores Word = 1 << iota // nothing
	Looks                    // it reads what is behind
	Changes                  // it reads and changes what is behind
	State                    // it reads what is behind, and changes the part that only the package of its type reaches
	Keeps                    // the result, the receiver, or what another slot leads to, leads to it afterwards
	Returns                  // it reads what is behind; a result leads there
	Formats                  // it makes text of it, as package fmt does: it calls methods of it, and of what is in it
	Fills                    // it changes all that is behind by reflection, and calls the named methods of it
	// it calls the function, or the named methods of it, all of the type of the slot if none is named
	Calls
)

var words = map[string]Word{
	"-": Ignores, "looks": Looks, "changes": Changes, "state": State, "keeps": Keeps, "returns": Returns, "formats": Formats, "fills": Fills,
	"calls": Calls, "appends": Changes | Returns,
}

// A Slot is what a function does with its receiver or one of its parameters.
type Slot struct {
	Word
	Methods []string // of Fills and Calls
}

// An Entry is what is known of a function.
type Entry struct {
	Does
	// the methods that it may call of what was once handed to its receiver or its package: a writer,
	// a handler
	Wraps []string
	slots []Slot
}

// Has reports whether the function does any of what.
func (e *Entry) Has(what Does) bool { return e.Does&what != 0 }

// Has reports whether any of words is done with the slot.
func (s Slot) Has(words Word) bool { return s.Word&words != 0 }

// OnlyLooks reports whether the function does nothing, to its slots neither.
func (e *Entry) OnlyLooks() bool {
	return !e.Has(^(Total | Fresh)) && len(e.Wraps) == 0 && !slices.ContainsFunc(e.slots, func(s Slot) bool { return s.Has(^(Ignores | Looks)) })
}

// Slots returns what the entry says of the receiver and of the parameters of its function, of which
// sig is the signature. It is the zero Slot for what leads nowhere.
func (e *Entry) Slots(sig *types.Signature) (recv Slot, params []Slot) {
	next := e.slots
	take := func(v *types.Var) (s Slot) {
		if leads(v.Type()) && len(next) > 0 {
			s, next = next[0], next[1:]
		}
		return s
	}
	if r := sig.Recv(); r != nil {
		recv = take(r)
	}
	for v := range sig.Params().Variables() {
		params = append(params, take(v))
	}
	return recv, params
}

// leads reports whether values of type t lead to memory, or to functions of the user. A function that knows nothing but
// the name of a type, a type parameter, can't look into its values. Locations of package time never change.
func leads(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return slices.ContainsFunc(terms(p), leads)
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		n, ok := types.Unalias(u.Elem()).(*types.Named)
		return !ok || n.Obj().Pkg() == nil || n.Obj().Pkg().Path() != "time" || n.Obj().Name() != "Location"
	case *types.Slice, *types.Map, *types.Chan, *types.Signature, *types.Interface:
		return true
	case *types.Struct:
		for f := range u.Fields() {
			if leads(f.Type()) {
				return true
			}
		}
	case *types.Array:
		return leads(u.Elem())
	}
	return false
}

// terms are the types that a constraint names.
func terms(p *types.TypeParam) (list []types.Type) {
	for t := range p.Constraint().Underlying().(*types.Interface).EmbeddedTypes() {
		if u, ok := t.(*types.Union); ok {
			for term := range u.Terms() {
				list = append(list, term.Type())
			}
		}
	}
	return list
}

// Of returns what is known of fn, or nil.
func Of(fn *types.Func) *Entry {
	name := fn.Origin().FullName()
	if from := strings.IndexByte(name, '['); from >= 0 { // type parameters of the receiver
		name = name[:from] + name[strings.LastIndexByte(name, ']')+1:]
	}
	return std()[name]
}

//go:embed std.txt
var text string

var std = sync.OnceValue(func() map[string]*Entry {
	table, err := parse(text)
	if err != nil {
		panic("facts: std.txt: " + err.Error()) // a test reads it, too
	}
	return table
})

// parse reads a table: headings, and below each the functions that it is about.
func parse(text string) (map[string]*Entry, error) {
	table := make(map[string]*Entry)
	var prefixes []string
	var heading *Entry
	for line := range strings.Lines(text) {
		names, indented := strings.CutPrefix(line, "\t")
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case indented:
			for name := range strings.FieldsSeq(names) {
				for _, prefix := range prefixes {
					if table[prefix+name] != nil {
						return nil, fmt.Errorf("%s%s is there twice", prefix, name)
					}
					table[prefix+name] = heading
				}
			}
		default:
			about, what, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("%q is neither a heading nor below one", line)
			}
			var err error
			if heading, err = parseEntry(what); err != nil {
				return nil, fmt.Errorf("%s: %w", about, err)
			}
			prefixes = nil
			path, receivers, _ := strings.Cut(about, " ")
			for recv := range strings.FieldsSeq(receivers) {
				name, pointer := strings.CutPrefix(recv, "*")
				if pointer {
					prefixes = append(prefixes, "(*"+path+"."+name+").")
				} else {
					prefixes = append(prefixes, "("+path+"."+name+").")
				}
			}
			if receivers == "" {
				prefixes = []string{path + "."}
			}
		}
	}
	return table, nil
}

// parseEntry reads what stands in a heading: first what the functions do, then the slots.
func parseEntry(text string) (*Entry, error) {
	e := &Entry{}
	for word := range strings.FieldsSeq(text) {
		if d, ok := does[word]; ok && len(e.slots) == 0 {
			e.Does |= d
			continue
		}
		if list, ok := strings.CutPrefix(word, "wraps("); ok && len(e.slots) == 0 {
			e.Wraps = strings.Split(strings.TrimSuffix(list, ")"), ",")
			continue
		}
		var s Slot
		for part := range strings.SplitSeq(word, "+") {
			name, methods, named := strings.Cut(strings.TrimSuffix(part, ")"), "(")
			w, ok := words[name]
			if !ok || named && w&(Calls|Fills) == 0 {
				return nil, fmt.Errorf("there is no word %q", part)
			}
			s.Word |= w
			if named {
				s.Methods = strings.Split(methods, ",")
			}
		}
		e.slots = append(e.slots, s)
	}
	return e, nil
}
