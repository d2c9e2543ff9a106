package tensorapi

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/internal/jsonfile"
)

// Parse reads a profile; name is what errors call the file. They have the form
// "file:line:column: what is wrong", one line for each mistake.
//
// A profile is a JSON object. What it says of functions stands under the word
// for it, in a list of full names as [types.Func.FullName] has them, without
// type parameters:
//
//	{
//		"name": "acme",
//		"async": "gpu",
//		"paths": {"t": ["example.com/acme/tensor", "example.com/acme/v2/tensor"]},
//		"core": ["example.com/acme/internal/...", "$t"],
//		"tensors": ["$t.Tensor"],
//		"cells": ["$t.Weight"],
//		"values": false,
//		"finishes": false,
//
//		"read": ["(*$t.Tensor).{Item,Float32s}", "$t.Scalar", "$t.Copy(1)"],
//		"inplace": ["(*$t.Tensor).*_"],
//		"op": ["*"],
//		"callsArg": {"once": ["$t.NoGrad"], "loop": ["$t.Each(1)"]},
//		"printers": ["example.com/acme/log.Infof"],
//		"rebuild": ["$t.Compile"]
//	}
//
// In all strings $name stands for each path of that name in turn, and {a,b} for a and for b. The last
// part of a name may have the wildcards * and ?. A function that is named in full is looked up by its
// name; for others the first entry of the file that matches counts. A number in parentheses after a
// name says which parameter is meant. Without one it is the receiver, or the first parameter of a
// function that has no receiver.
//
//   - name: what messages call the library. A profile replaces a known one of the same name.
//   - async: whether calls return before the work is done: true, false, or "gpu" if that is so on
//     accelerators only, or only reads wait for them. If it is false, all findings are of severity
//     info.
//   - core: the import paths of packages whose code is not analysed, because this profile says what it
//     does; /... means everything below.
//   - tensors, cells: the types of tensors, and the types that hold tensors which change, like
//     parameters.
//   - values: tensors never change. So an operation whose result is dropped was for nothing.
//   - finishes: operations are finished when they return, although the results are still on the device.
//     Clocks need no wait then.
//   - read: waits for an operand and returns its value.
//   - wait, waitall: waits for an operand, or for everything, and returns no value.
//   - transfer: waits for an operand and returns it as a tensor in the host's memory.
//   - save: waits for an operand and writes it out of the process.
//   - print: waits for an operand and formats it. Package fmt does so if the method Format, Error or
//     String of a tensor is here.
//   - op: enqueues work and returns its result. "*" stands for all functions of the core that return a
//     tensor and have no other entry.
//   - view: returns a tensor that shares storage with an operand.
//   - inplace: enqueues work that changes a tensor, and may return the tensor.
//   - host: returns a tensor made of host data, for which nobody waits long.
//   - draw: enqueues work and returns random numbers.
//   - value: returns the tensor that a cell holds.
//   - step, backward, mutate: enqueues work that changes cells.
//   - limit, control: sets something, such as a bound on the queue.
//   - output: shows or records tensors when they are known, and waits for none of them.
//   - meta, pure, poll: waits for nothing and enqueues nothing.
//   - callsArg: calls the function it is given: once, in a loop, or later.
//   - printers: functions that format their last arguments, like those of package fmt. If the name ends
//     in f, the argument before these is the format.
//   - rebuild: builds or compiles a graph or plan, which is slow.
func Parse(name string, text []byte) (*Profile, error) {
	r := jsonfile.NewReader(name, text)
	p := readProfile(r)
	r.End()
	return p, r.Err()
}

// ConfigName is the file of a user's module that has, among other things, the
// profiles of the libraries that the module uses:
//
//	{"profiles": ["lint/acme.json", {"name": "inhouse", …}]}
//
// The names are those of files, relative to the folder of this one.
const ConfigName = "asyncgen.json"

// ConfigKeys are all the keys that the file called [ConfigName] may have, whoever reads
// them: the generator the effects of functions, the analyzers the rest.
var ConfigKeys = []string{"effects", "profiles", "rules", "paths", "reasons"}

// Load reads profiles from the file at path. A file called [ConfigName] has a list of profiles and
// of names of their files; any other file is one profile. Load writes the text of all files that it
// reads to digest, if that is not nil.
func Load(path string, digest hash.Hash) ([]*Profile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if digest != nil {
		fmt.Fprintf(digest, "%d\n%s", len(text), text)
	}
	if filepath.Base(path) != ConfigName {
		p, err := Parse(path, text)
		return []*Profile{p}, err
	}
	r := jsonfile.NewReader(path, text)
	var list []*Profile
	r.Object("the file", func(key string) {
		if key != "profiles" {
			if !slices.Contains(ConfigKeys, key) {
				r.Errorf("there is no setting %q%s", key, jsonfile.DidYouMean(key, ConfigKeys))
			}
			r.Skip() // what others look for
			return
		}
		r.Array(`"profiles"`, func() {
			if r.Next() == '{' {
				list = append(list, readProfile(r))
				return
			}
			file, ok := r.String("a profile, or the name of its file")
			if !ok {
				return
			}
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if filepath.Base(file) == ConfigName {
				r.Errorf("the file of a profile can't be called %s", ConfigName)
				return
			}
			more, err := Load(file, digest)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				r.Errorf("there is no file %s", file)
			case err != nil:
				r.Add(err)
			default:
				list = append(list, more...)
			}
		})
	})
	r.End()
	return list, r.Err()
}

// Digest returns the digest of what [Load] reads for each of the paths.
func Digest(paths ...string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		if _, err := Load(path, h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

//go:embed profiles
var files embed.FS

// shippedFiles lists the profiles of other libraries that come with the module.
var shippedFiles = sync.OnceValue(func() []shipped {
	entries, err := files.ReadDir("profiles")
	if err != nil {
		panic(err)
	}
	var list []shipped
	for _, e := range entries {
		name := "profiles/" + e.Name()
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		list = append(list, shipped{string(text), sync.OnceValue(func() *Profile {
			p, err := Parse(name, text)
			if err != nil {
				panic(err) // a test reads them all
			}
			return p
		})})
	}
	return list
})

// Shipped lists the profiles that come with the module: ours, then those of
// other libraries.
func Shipped() []*Profile {
	list := []*Profile{ours}
	for _, f := range shippedFiles() {
		list = append(list, f.profile())
	}
	return list
}

// words are the keys for what functions do.
var words = map[string]Kind{
	"read": Read, "wait": Wait, "waitall": WaitAll, "transfer": Transfer, "save": Save, "print": Print,
	"op": Op, "view": View, "inplace": InPlace, "host": Host, "draw": Draw, "value": Value,
	"step": Mutate, "backward": Mutate, "mutate": Mutate,
	"limit": Control, "control": Control, "output": Output, "meta": Meta, "pure": Pure, "poll": Poll,
}

var callWords = map[string]Calls{"once": Once, "loop": Loop, "later": Later}

var otherKeys = []string{"name", "async", "paths", "core", "tensors", "cells", "values", "finishes", "callsArg", "printers", "rebuild"}

// A builder makes a profile of what a reader reads.
type builder struct {
	*jsonfile.Reader
	p     *Profile
	paths map[string][]string
	later []func() // what needs the paths, which may come last
	calls []func() // what adds to that
	kinds map[string]string
}

func readProfile(r *jsonfile.Reader) *Profile {
	b := &builder{
		Reader: r, paths: make(map[string][]string), kinds: make(map[string]string),
		p: &Profile{Funcs: make(map[string]Func), Printers: make(map[string]bool), Rebuilds: make(map[string]bool)},
	}
	start, seen := r.Offset(), make(map[string]bool)
	r.Object("a profile", func(key string) {
		seen[key] = true
		b.key(key)
	})
	for _, key := range []string{"name", "async", "tensors"} {
		if !seen[key] {
			r.ErrorAt(start, "the profile lacks %q", key)
		}
	}
	for _, do := range append(b.later, b.calls...) {
		do()
	}
	return b.p
}

func (b *builder) key(key string) {
	switch key {
	case "name":
		if b.p.Name, _ = b.String("the name of the library"); b.p.Name == "" {
			b.Errorf("the name is empty")
		}
	case "async":
		b.async()
	case "values":
		b.p.Values = b.Bool(key)
	case "finishes":
		b.p.Finishes = b.Bool(key)
	case "paths":
		b.Object(`"paths"`, func(name string) {
			if !pathName().MatchString(name) {
				b.Errorf("%q can't be the name of a path: letters only", name)
			}
			b.Array(strconv.Quote(name), func() {
				if s, ok := b.String("an import path"); ok {
					if !importPath().MatchString(s) {
						b.Errorf("%q is no import path", s)
						return
					}
					b.paths[name] = append(b.paths[name], s)
				}
			})
		})
	case "core":
		b.names(key, "an import path", func(s string) {
			if !importPath().MatchString(strings.TrimSuffix(s, "/...")) {
				b.Errorf("%q is no import path", s)
			}
			b.p.Packages = append(b.p.Packages, s)
		})
	case "tensors", "cells":
		list := &b.p.Types
		if key == "cells" {
			list = &b.p.Cells
		}
		b.names(key, "the name of a type", func(s string) {
			if !typeName().MatchString(s) {
				b.Errorf("%q is not the name of a type: want path.Name", s)
			}
			*list = append(*list, s)
		})
	case "printers", "rebuild":
		set := b.p.Printers
		if key == "rebuild" {
			set = b.p.Rebuilds
		}
		b.names(key, "the name of a function", func(s string) {
			if full, _, ok := b.function(s); ok {
				set[full] = true
			}
		})
	case "callsArg":
		b.Object(`"callsArg"`, func(word string) {
			when, ok := callWords[word]
			if !ok {
				b.Errorf("functions are called once, loop or later, not %q", word)
			}
			b.collect(&b.calls, word, "the name of a function", func(s string) { b.callsArg(s, when) })
		})
	default:
		kind, ok := words[key]
		if !ok {
			b.Errorf("there is no setting %q%s", key, jsonfile.DidYouMean(key, append(slices.Sorted(maps.Keys(words)), otherKeys...)))
			b.Skip()
			return
		}
		b.names(key, "the name of a function", func(s string) { b.add(key, kind, s) })
	}
}

func (b *builder) async() {
	switch b.Next() {
	case 't', 'f':
		if tok := b.Token(); tok == true {
			b.p.Async = Async
		}
		return
	case '"':
		if b.Token() == "gpu" {
			b.p.Async = OnGPU
			return
		}
	default:
		b.Point()
		defer b.Skip()
	}
	b.Errorf(`"async" is true, "gpu" or false`)
}

// names calls each for the strings of a list with paths and braces expanded,
// when all of the profile has been read.
func (b *builder) names(key, what string, each func(s string)) { b.collect(&b.later, key, what, each) }

func (b *builder) collect(todo *[]func(), key, what string, each func(s string)) {
	b.Array(strconv.Quote(key), func() {
		s, ok := b.String(what)
		if !ok {
			return
		}
		at := b.Last
		*todo = append(*todo, func() {
			b.Last = at
			list := b.expand(s)
			if len(list) > mostNames {
				b.Errorf("this stands for more than %d names", mostNames)
				return
			}
			for _, s := range list {
				each(s)
			}
		})
	})
}

var (
	pathName   = lazily(`^[A-Za-z]+$`)
	pathRef    = lazily(`\$[A-Za-z]+`)
	braces     = lazily(`\{([^{}]*)\}`)
	importPath = lazily(`^[\w.~-]+(/[\w.~-]+)*$`)
	typeName   = lazily(`^[\w.~-]+(/[\w.~-]+)*\.[\pL_][\pL\d_]*$`)
	operand    = lazily(`\((\d+)\)$`)
	fullName   = lazily(`^((?:\(\*?[\w.~-]+(?:/[\w.~-]+)*\.[\pL_][\pL\d_]*\)|[\w.~-]+(?:/[\w.~-]+)*)\.)([\pL\d_*?]+)$`)
)

// lazily compiles a pattern when it is first asked for. The go command starts the
// analysis anew for each package, and most packages need no profile.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// mostNames bounds what one string can stand for.
const mostNames = 1000

// expand returns all strings that s stands for: with each path, and with each alternative in braces. It
// stops once there are more than mostNames.
func (b *builder) expand(s string) []string {
	var list []string
	add := func(s string) {
		if len(list) <= mostNames {
			list = append(list, b.expand(s)...)
		}
	}
	if m := pathRef().FindStringIndex(s); m != nil {
		name := s[m[0]+1 : m[1]]
		paths, ok := b.paths[name]
		if !ok {
			b.Errorf("there is no path %q", name)
		}
		for _, path := range paths {
			add(s[:m[0]] + path + s[m[1]:])
		}
		return list
	}
	m := braces().FindStringSubmatchIndex(s)
	if m == nil {
		return []string{s}
	}
	for alternative := range strings.SplitSeq(s[m[2]:m[3]], ",") {
		add(s[:m[0]] + alternative + s[m[1]:])
	}
	return list
}

// function splits an entry such as "$t.Copy(1)" into the function's full name, which may have wildcards, and the
// number of its operand, [None] without one.
func (b *builder) function(s string) (full string, arg int, ok bool) {
	full, arg = s, None
	if m := operand().FindStringSubmatchIndex(s); m != nil {
		full = s[:m[0]]
		n, err := strconv.Atoi(s[m[2]:m[3]])
		if err != nil {
			n = len(s) // no function has as many
		}
		arg = n
	}
	full = bare(full)
	if !fullName().MatchString(full) {
		b.Errorf("%q is not the name of a function: want path.Func, (path.Type).Method or (*path.Type).Method", s)
		return "", 0, false
	}
	return full, arg, true
}

func (b *builder) add(word string, kind Kind, s string) {
	if s == "*" && kind == Op {
		b.p.Ops = true
		return
	}
	full, arg, ok := b.function(s)
	if !ok {
		return
	}
	if arg == None {
		arg = kind.operand(full[0] == '(')
	}
	if other, ok := b.kinds[full]; ok && other != word {
		b.Errorf("%s is under %q, too", full, other)
		return
	}
	b.kinds[full] = word
	b.put(full, Func{Name: full, Kind: kind, Arg: arg})
}

// operand is the one that a kind speaks of unless told otherwise.
func (k Kind) operand(method bool) int {
	switch k {
	case Read, Transfer, Print, Wait, View, InPlace, Value:
		if !method {
			return 0
		}
		return Recv
	case Mutate, Draw, Meta, Poll:
		if method {
			return Recv
		}
	}
	return None
}

func (b *builder) put(full string, f Func) {
	m := fullName().FindStringSubmatch(full)
	if !strings.ContainsAny(m[2], "*?") {
		b.p.Funcs[full] = f
		return
	}
	i := slices.IndexFunc(b.p.Patterns, func(p Pattern) bool { return p.Func.Name == full })
	if i < 0 {
		b.p.Patterns = append(b.p.Patterns, Pattern{Prefix: m[1], Glob: m[2], Func: f})
	} else {
		b.p.Patterns[i].Func = f
	}
}

func (b *builder) callsArg(s string, when Calls) {
	full, arg, ok := b.function(s)
	if !ok {
		return
	}
	f, known := b.p.Funcs[full]
	if i := slices.IndexFunc(b.p.Patterns, func(p Pattern) bool { return p.Func.Name == full }); i >= 0 {
		f, known = b.p.Patterns[i].Func, true
	}
	if !known {
		f = Func{Name: full, Kind: Call, Arg: max(arg, 0)}
	}
	f.Calls = when
	b.put(full, f)
}

// Find returns the path of the file called [ConfigName] in dir or the nearest
// folder above it that has one, or "". It looks no further up than [Root]: a file
// that somebody has left above the module says nothing about it.
func Find(dir string) string {
	root := Root(dir)
	for up := dir; ; up = filepath.Dir(up) {
		if file := filepath.Join(up, ConfigName); isFile(file) {
			return file
		}
		if up == root || root == "" || up == filepath.Dir(up) {
			return ""
		}
	}
}

// Root returns the folder that dir, an absolute path, belongs to: that of the
// workspace around it or, if there is none, of its module, or "".
func Root(dir string) string {
	module, work := "", os.Getenv("GOWORK")
	for up := dir; ; up = filepath.Dir(up) {
		switch {
		case (work == "" || work == "auto") && isFile(filepath.Join(up, "go.work")), filepath.IsAbs(work) && up == filepath.Dir(work):
			return up
		case module == "" && isFile(filepath.Join(up, "go.mod")):
			module = up
		}
		if up == filepath.Dir(up) {
			return module
		}
	}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
