package load

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// ConfigName is the file, in the folder of a module's go.mod, that says what
// functions of other people do:
//
//	{
//		"effects": {
//			"github.com/acme/metrics.Observe":         "output",
//			"(*github.com/acme/metrics.Gauge).Set":    "output",
//			"(github.com/acme/metrics.Sink).*":        "output",
//			"github.com/acme/rules.*":                 "none"
//		}
//	}
//
// The names are those of [types.Func.FullName], without type parameters; a star
// stands for all functions of a package, or all methods of a type, that no
// other line names. The words are those of //asyncgen:effects. What a
// directive beside a function says goes before what the file says, and that
// before what comes with the generator.
const ConfigName = "asyncgen.json"

// modulesJSON says the same of modules that many programs use, of each function for itself. Beside the
// effects of each stand its path and the versions of which the names were taken;
// of other versions what is named there still holds, what is not is unknown. What writes may call the methods in wraps.
//
//go:embed modules.json
var modulesJSON []byte

// A table says what functions do, by their names.
type table map[string]Effects

// lookup returns what t says of the function with the given full name.
func (t table) lookup(full string) (Effects, bool) {
	if e, ok := t[full]; ok {
		return e, true
	}
	e, ok := t[full[:strings.LastIndexByte(full, '.')+1]+"*"]
	return e, ok
}

var typeParams = regexp.MustCompile(`\[[^\]]*\]\)`)

// FullName is the name of fn in the file [ConfigName].
func FullName(fn *types.Func) string { return typeParams.ReplaceAllString(fn.FullName(), ")") }

// shipped is the table of modulesJSON.
func shipped() (table, error) {
	var modules []struct {
		Path, Versions, Wraps string
		Effects               map[string]string
	}
	d := json.NewDecoder(bytes.NewReader(modulesJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&modules); err != nil {
		return nil, fmt.Errorf("load: modules.json: %w", err)
	}
	t := make(table)
	for _, m := range modules {
		for name, text := range m.Effects {
			e, err := parseEffects(text)
			if err == nil && (!fullName.MatchString(name) || strings.HasSuffix(name, "*")) {
				err = errors.New("not the name of a function")
			}
			if e.Output {
				e.Wraps = m.Wraps
			}
			if err != nil {
				return nil, fmt.Errorf("load: modules.json: %s: %w", name, err)
			}
			t[name] = e
		}
	}
	return t, nil
}

var fullName = regexp.MustCompile(`^(?:\(\*?([^()*]+)\.(\w+)\)|([^()*]+))\.(\w+|\*)$`)

// split takes a full name apart; method is "*" for all.
func split(full string) (path, typ, name string, ok bool) {
	m := fullName.FindStringSubmatch(full)
	if m == nil {
		return "", "", "", false
	}
	return m[1] + m[3], m[2], m[4], true
}

// A configEntry is one line of effects in a file, and where it stands.
type configEntry struct {
	pos     string // file:line:column
	name    string
	effects Effects
}

// readConfig reads the file at path. That there is none is no error.
func readConfig(path string) ([]configEntry, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c := &configReader{path: relative(path), text: text, d: json.NewDecoder(bytes.NewReader(text))}
	if err := c.read(); err != nil {
		c.errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return c.entries, errors.Join(c.errs...)
}

// A configReader goes through a file token by token, so that it knows where each stands.
type configReader struct {
	path    string
	text    []byte
	d       *json.Decoder
	last    int64 // where the last token ends
	entries []configEntry
	errs    []error
}

// position is where the last token ends, or the next begins, as file:line:column.
func (c *configReader) position() string {
	at := int(c.last)
	for at < len(c.text) && strings.IndexByte(" \t\r\n,:", c.text[at]) >= 0 {
		at++
	}
	line := 1 + bytes.Count(c.text[:at], []byte("\n"))
	return fmt.Sprintf("%s:%d:%d", c.path, line, at-bytes.LastIndexByte(c.text[:at], '\n'))
}

func (c *configReader) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", c.position(), fmt.Sprintf(format, args...)))
}

func (c *configReader) token() (json.Token, error) {
	c.last = c.d.InputOffset()
	return c.d.Token()
}

// object calls each for the keys of an object; each reads the value.
func (c *configReader) object(what string, each func(key string) error) error {
	tok, err := c.token()
	if err != nil {
		return err
	}
	if tok != json.Delim('{') {
		return fmt.Errorf("%s is an object", what)
	}
	seen := make(map[string]bool)
	for c.d.More() {
		key, err := c.token()
		if err != nil {
			return err
		}
		if seen[key.(string)] {
			c.errorf("%q is there twice", key)
		}
		seen[key.(string)] = true
		if err := each(key.(string)); err != nil {
			return err
		}
	}
	_, err = c.token()
	return err
}

func (c *configReader) read() error {
	err := c.object("the file", func(key string) error {
		if key != "effects" {
			if !slices.Contains(tensorapi.ConfigKeys, key) { // else it is for the linter
				c.errorf("there is no setting %q%s", key, DidYouMean(key, tensorapi.ConfigKeys))
			}
			var skip json.RawMessage
			return c.d.Decode(&skip)
		}
		return c.object(`"effects"`, c.effects)
	})
	if err != nil {
		return err
	}
	if _, err := c.token(); err != io.EOF {
		return errors.New("there is something after the end")
	}
	return nil
}

func (c *configReader) effects(name string) error {
	pos := c.position()
	if _, _, _, ok := split(name); !ok {
		c.errorf("%q is not the name of a function: want path.Func, (path.Type).Method or (*path.Type).Method", name)
	}
	value, err := c.token()
	if err != nil {
		return err
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("the effects of %s are words in one string", name)
	}
	e, err := parseEffects(text)
	if err != nil {
		c.errorf("%s: %v", name, err)
	}
	c.entries = append(c.entries, configEntry{pos, name, e})
	return nil
}

// configure reads the files of the modules that the program has been loaded for.
func (prog *Program) configure() error {
	var errs []error
	prog.config = make(table)
	from := make(map[string]string)
	for _, dir := range prog.moduleDirs() {
		entries, err := readConfig(filepath.Join(dir, ConfigName))
		if err != nil {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if err := prog.exists(e); err != nil {
				errs = append(errs, err)
			}
			if other, ok := prog.config[e.name]; ok && other != e.effects {
				errs = append(errs, fmt.Errorf("%s: %s says otherwise of %s", e.pos, from[e.name], e.name))
			}
			prog.config[e.name], from[e.name] = e.effects, e.pos
		}
	}
	var err error
	if prog.shipped, err = shipped(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// moduleDirs are the folders of the modules that packages of the program belong to.
func (prog *Program) moduleDirs() (dirs []string) {
	for _, pkg := range prog.packages {
		if pkg.Module != nil && pkg.Module.Dir != "" && !slices.Contains(dirs, pkg.Module.Dir) {
			dirs = append(dirs, pkg.Module.Dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// exists returns an error if a package that the program imports has no function of
// the name of e. Of other packages nothing is known.
func (prog *Program) exists(e configEntry) error {
	path, typ, name, _ := split(e.name)
	for _, pkg := range prog.packages {
		for _, p := range append(pkg.Types.Imports(), pkg.Types) {
			if p.Path() != path || !p.Complete() {
				continue
			}
			if typ == "" {
				return existsIn(e, p, p.Scope().Names(), func(n string) bool { _, ok := p.Scope().Lookup(n).(*types.Func); return ok }, name)
			}
			obj, ok := p.Scope().Lookup(typ).(*types.TypeName)
			if !ok {
				return fmt.Errorf("%s: package %s has no type %s%s", e.pos, path, typ, DidYouMean(typ, p.Scope().Names()))
			}
			methods := types.NewMethodSet(types.NewPointer(obj.Type()))
			if types.IsInterface(obj.Type()) {
				methods = types.NewMethodSet(obj.Type())
			}
			var names []string
			for m := range methods.Methods() {
				names = append(names, m.Obj().Name())
			}
			if err := existsIn(e, p, names, func(n string) bool { return slices.Contains(names, n) }, name); err != nil {
				return err
			}
			if sel := methods.Lookup(p, name); sel != nil && FullName(sel.Obj().(*types.Func)) != e.name {
				return fmt.Errorf("%s: the name of this method is %s", e.pos, FullName(sel.Obj().(*types.Func)))
			}
			return nil
		}
	}
	if full := prog.ending(path); full != "" {
		return fmt.Errorf("%s: %s: the program needs no package %s: did you mean %s?", e.pos, e.name, path, full)
	}
	return nil
}

// ending returns the path of an imported package that ends in path, if none has that path.
func (prog *Program) ending(path string) (found string) {
	for _, pkg := range prog.packages {
		for _, p := range pkg.Types.Imports() {
			if p.Path() == path {
				return ""
			}
			if strings.HasSuffix(p.Path(), "/"+path) && (found == "" || p.Path() < found) {
				found = p.Path()
			}
		}
	}
	return found
}

func existsIn(e configEntry, p *types.Package, names []string, has func(string) bool, name string) error {
	if name == "*" || has(name) {
		return nil
	}
	return fmt.Errorf("%s: there is no function %s in package %s%s", e.pos, e.name, p.Path(), DidYouMean(name, names))
}
