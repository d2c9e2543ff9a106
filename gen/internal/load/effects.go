package load

import (
	"fmt"
	"slices"
	"strings"
)

// Effects is what //asyncgen:pure and //asyncgen:effects say about a function, a
// method of an interface, a field of function type, or all functions of a type, and what the file
// asyncgen.json says about functions of others.
// The zero Effects are those of a pure function: its results depend on its
// arguments, and what they lead to, alone.
type Effects struct {
	Output  bool // writes to the outside: a file, a stream, a display, a metric
	Input   bool // may wait for the outside
	Device  bool // enqueues device work, reads and changes cells
	Stamps  bool // writes the time of the call along with its output
	Builds  bool // changes a text in the making that a later call puts out: the fields of a line of a log
	Formats bool // makes text of its arguments as package fmt does, so that it calls their methods
	Changes bool // changes what its arguments, or its receiver, lead to

	// Wraps are methods that it may call of what was once handed to its package: a writer, a hook.
	// Only what comes with the generator says so.
	Wraps string
}

// A word names one effect.
type word struct {
	name string
	set  func(*Effects)
}

// words are the words for effects, in the order in which messages list them.
var words = []word{
	{"output", func(e *Effects) { e.Output = true }},
	{"input", func(e *Effects) { e.Input = true }},
	{"device", func(e *Effects) { e.Device = true }},
	{"stamps", func(e *Effects) { e.Output, e.Stamps = true, true }},
	{"builds", func(e *Effects) { e.Builds = true }},
	{"formats", func(e *Effects) { e.Formats = true }},
	{"changes", func(e *Effects) { e.Changes = true }},
	{"none", func(*Effects) {}},
}

func wordNames() []string {
	var names []string
	for _, w := range words {
		names = append(names, w.name)
	}
	return names
}

// parseEffects reads the words of a directive or of a file. It goes on after
// an unknown one; the error is about the first.
func parseEffects(text string) (e Effects, err error) {
	list := strings.Fields(text)
	if len(list) == 0 {
		return e, fmt.Errorf("says nothing: name %s", strings.Join(wordNames(), ", "))
	}
	for _, name := range list {
		i := slices.IndexFunc(words, func(w word) bool { return w.name == name })
		if i < 0 {
			if err == nil {
				err = fmt.Errorf("knows %s, not %q%s", strings.Join(wordNames(), ", "), name, DidYouMean(name, wordNames()))
			}
			continue
		}
		words[i].set(&e)
	}
	return e, err
}
