package tensorapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
// In all strings $name stands for each path of that name in turn, and {a,b} for
// a and for b. The last part of a name may have the wildcards * and ?; functions
// that are named in full come before those, and those in the order of the file.
// A number after a name, in parentheses, is the parameter that is meant; without
// one it is the receiver, and for a function the first.
//
//   - name: what messages call the library. A profile with the name of one that
//     is known replaces it.
//   - async: true if calls return before the work is done; "gpu" if that is so
//     on accelerators only, or reads wait for those; false if not at all. What
//     is found in programs that use a library of the last kind is of severity
//     info.
//   - core: the import paths of packages whose own code is not to be analysed,
//     because this profile says what it does; /... means everything below.
//   - tensors, cells: the types of tensors, and those of what holds tensors that
//     change.
//   - values: tensors never change, so that an operation whose result is
//     dropped was for nothing.
//   - finishes: operations are finished when they return, although what they
//     return is still on the device. Clocks need no wait then.
//   - read, wait, waitall, transfer, print: waits for an operand and returns its
//     value; without a value; for everything; returns it as a tensor in the
//     host's memory; formats it. Package fmt waits for tensors that have a method
//     Format, Error or String under print.
//   - op, view, inplace, host, draw: enqueues work and returns its result; a
//     tensor that shares storage; a tensor that it changed; a tensor of host
//     data, for which nobody waits long; random numbers. "*" under op stands for all
//     functions of the core that return a tensor and are not mentioned.
//   - value: returns the tensor that a cell holds.
//   - step, backward, mutate: enqueues work that changes cells.
//   - limit, control: sets something, a bound on the queue for example.
//   - meta, pure, poll: waits for nothing, enqueues nothing.
//   - callsArg: calls the function it is given, once, in a loop, or later.
//   - printers: format their last arguments like those of package fmt, those with
//     a name that ends in f by a format.
//   - rebuild: builds or compiles a graph or plan, which is slow.
func Parse(name string, text []byte) (*Profile, error) {
	r := newReader(name, text)
	p := r.profile()
	r.end()
	return p, errors.Join(r.errs...)
}

// ConfigName is the file of a user's module that has, among other things, the
// profiles of the libraries that the module uses:
//
//	{"profiles": ["lint/acme.json", {"name": "inhouse", …}]}
//
// The names are those of files, relative to the folder of this one.
const ConfigName = "asyncgen.json"

// Load reads the profiles of the file at path: all those in a file called
// [ConfigName], else the one that the file is. What is written to digest, if
// that is not nil, changes with the text of the files read.
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
	r := newReader(path, text)
	var list []*Profile
	r.object("the file", func(key string) {
		if key != "profiles" {
			r.skip() // what others look for
			return
		}
		r.array(`"profiles"`, func() {
			if r.next() == '{' {
				list = append(list, r.profile())
				return
			}
			file, ok := r.string("a profile, or the name of its file")
			if !ok {
				return
			}
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if filepath.Base(file) == ConfigName {
				r.errorf("the file of a profile can't be called %s", ConfigName)
				return
			}
			more, err := Load(file, digest)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				r.errorf("there is no file %s", file)
			case err != nil:
				r.errs = append(r.errs, err)
			default:
				list = append(list, more...)
			}
		})
	})
	r.end()
	return list, errors.Join(r.errs...)
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

// A reader goes through a file token by token, so that it knows where each
// stands.
type reader struct {
	name string
	text []byte
	d    *json.Decoder
	last int64 // where the last token ends, or the last thing of interest begins
	errs []error
	dead bool // the text is not JSON from here on
}

func newReader(name string, text []byte) *reader {
	return &reader{name: name, text: text, d: json.NewDecoder(bytes.NewReader(text))}
}

func (r *reader) errorf(format string, args ...any) {
	r.errorAt(r.last, format, args...)
}

func (r *reader) errorAt(offset int64, format string, args ...any) {
	if r.dead {
		return
	}
	at := int(offset)
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	line := 1 + bytes.Count(r.text[:at], []byte("\n"))
	column := at - bytes.LastIndexByte(r.text[:at], '\n')
	r.errs = append(r.errs, fmt.Errorf("%s:%d:%d: %s", r.name, line, column, fmt.Sprintf(format, args...)))
}

func (r *reader) token() json.Token {
	r.last = r.d.InputOffset()
	tok, err := r.d.Token()
	if err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			r.last = max(0, syntax.Offset-1)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		r.errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
		r.dead = true
	}
	return tok
}

// next is the first byte of the next value.
func (r *reader) next() byte {
	rest := bytes.TrimLeft(r.text[r.d.InputOffset():], " \t\r\n,:")
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

func (r *reader) more() bool { return !r.dead && r.d.More() }

// skip passes over a value.
func (r *reader) skip() {
	depth := 0
	for !r.dead {
		switch r.token() {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// object calls each for the keys of an object; each reads the value.
func (r *reader) object(what string, each func(key string)) {
	if r.next() != '{' {
		r.last = r.d.InputOffset()
		r.errorf("%s is an object", what)
		r.skip()
		return
	}
	r.token()
	seen := make(map[string]bool)
	for r.more() {
		key, _ := r.token().(string)
		if r.dead {
			return
		}
		if seen[key] {
			r.errorf("%q is there twice", key)
		}
		seen[key] = true
		each(key)
	}
	if !r.dead {
		r.token()
	}
}

// array calls each for the elements of an array; each reads one.
func (r *reader) array(what string, each func()) {
	if r.next() != '[' {
		r.last = r.d.InputOffset()
		r.errorf("%s is a list", what)
		r.skip()
		return
	}
	r.token()
	for r.more() {
		each()
	}
	if !r.dead {
		r.token()
	}
}

func (r *reader) string(what string) (string, bool) {
	if r.next() != '"' {
		r.last = r.d.InputOffset()
		r.errorf("want %s, a string", what)
		r.skip()
		return "", false
	}
	s, ok := r.token().(string)
	return s, ok
}

func (r *reader) end() {
	if r.dead {
		return
	}
	if _, err := r.d.Token(); err != io.EOF {
		r.last = r.d.InputOffset()
		r.errorf("there is something after the end")
	}
}

// words are the keys for what functions do.
var words = map[string]Kind{
	"read": Read, "wait": Wait, "waitall": WaitAll, "transfer": Transfer, "print": Print,
	"op": Op, "view": View, "inplace": InPlace, "host": Host, "draw": Draw, "value": Value,
	"step": Mutate, "backward": Mutate, "mutate": Mutate,
	"limit": Control, "control": Control, "meta": Meta, "pure": Pure, "poll": Poll,
}

var callWords = map[string]Calls{"once": Once, "loop": Loop, "later": Later}

var otherKeys = []string{"name", "async", "paths", "core", "tensors", "cells", "values", "finishes", "callsArg", "printers", "rebuild"}

// A builder makes a profile of what a reader reads.
type builder struct {
	*reader
	p     *Profile
	paths map[string][]string
	later []func() // what needs the paths, which may come last
	calls []func() // what adds to that
	kinds map[string]string
}

func (r *reader) profile() *Profile {
	b := &builder{
		reader: r, paths: make(map[string][]string), kinds: make(map[string]string),
		p: &Profile{Funcs: make(map[string]Func), Printers: make(map[string]bool), Rebuilds: make(map[string]bool)},
	}
	start, seen := r.d.InputOffset(), make(map[string]bool)
	r.object("a profile", func(key string) {
		seen[key] = true
		b.key(key)
	})
	for _, key := range []string{"name", "async", "tensors"} {
		if !seen[key] {
			r.errorAt(start, "the profile lacks %q", key)
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
		if b.p.Name, _ = b.string("the name of the library"); b.p.Name == "" {
			b.errorf("the name is empty")
		}
	case "async":
		b.async()
	case "values":
		b.p.Values = b.bool(key)
	case "finishes":
		b.p.Finishes = b.bool(key)
	case "paths":
		b.object(`"paths"`, func(name string) {
			if !pathName().MatchString(name) {
				b.errorf("%q can't be the name of a path: letters only", name)
			}
			b.array(strconv.Quote(name), func() {
				if s, ok := b.string("an import path"); ok {
					if !importPath().MatchString(s) {
						b.errorf("%q is no import path", s)
						return
					}
					b.paths[name] = append(b.paths[name], s)
				}
			})
		})
	case "core":
		b.names(key, "an import path", func(s string) {
			if !importPath().MatchString(strings.TrimSuffix(s, "/...")) {
				b.errorf("%q is no import path", s)
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
				b.errorf("%q is not the name of a type: want path.Name", s)
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
		b.object(`"callsArg"`, func(word string) {
			when, ok := callWords[word]
			if !ok {
				b.errorf("functions are called once, loop or later, not %q", word)
			}
			b.collect(&b.calls, word, "the name of a function", func(s string) { b.callsArg(s, when) })
		})
	default:
		kind, ok := words[key]
		if !ok {
			b.errorf("there is no setting %q%s", key, similar(key))
			b.skip()
			return
		}
		b.names(key, "the name of a function", func(s string) { b.add(key, kind, s) })
	}
}

func (b *builder) async() {
	switch b.next() {
	case 't', 'f':
		if tok := b.token(); tok == true {
			b.p.Async = Async
		}
		return
	case '"':
		if b.token() == "gpu" {
			b.p.Async = OnGPU
			return
		}
	default:
		b.last = b.d.InputOffset()
		defer b.skip()
	}
	b.errorf(`"async" is true, "gpu" or false`)
}

func (b *builder) bool(key string) bool {
	if c := b.next(); c != 't' && c != 'f' {
		b.last = b.d.InputOffset()
		b.errorf("%q is true or false", key)
		b.skip()
		return false
	}
	v, _ := b.token().(bool)
	return v
}

// names calls each for the strings of a list with paths and braces expanded,
// when all of the profile has been read.
func (b *builder) names(key, what string, each func(s string)) { b.collect(&b.later, key, what, each) }

func (b *builder) collect(todo *[]func(), key, what string, each func(s string)) {
	b.array(strconv.Quote(key), func() {
		s, ok := b.string(what)
		if !ok {
			return
		}
		at := b.last
		*todo = append(*todo, func() {
			b.last = at
			list := b.expand(s)
			if len(list) > mostNames {
				b.errorf("this stands for more than %d names", mostNames)
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

// expand replaces the first path or brace in s and goes on with the results, up to
// one more than mostNames.
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
			b.errorf("there is no path %q", name)
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

// function splits what stands for a function into its full name, which may have
// wildcards, and its operand, which is [None] if it is not said.
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
		b.errorf("%q is not the name of a function: want path.Func, (path.Type).Method or (*path.Type).Method", s)
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
		b.errorf("%s is under %q, too", full, other)
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

// similar suggests the key that was meant.
func similar(key string) string {
	for _, known := range append(slices.Sorted(maps.Keys(words)), otherKeys...) {
		if strings.EqualFold(key, known) || strings.EqualFold(strings.TrimSuffix(key, "s"), known) || strings.EqualFold(key+"s", known) {
			return fmt.Sprintf("; did you mean %q?", known)
		}
	}
	return ""
}

// Find returns the path of the file called [ConfigName] in dir or the nearest
// folder above it that has one, or "".
func Find(dir string) string {
	for {
		file := filepath.Join(dir, ConfigName)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
