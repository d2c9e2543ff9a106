package analysis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A listed package is what go list says of one.
type listed struct {
	ImportPath, ForTest, Dir string
	IgnoredGoFiles, Deps     []string
	DepOnly                  bool
	Error                    *struct{ Err string }
}

// withoutC returns the packages that patterns name without those that can't be
// compiled for lack of C: of a compiler, a library or its headers. The reasons say
// why, one line for each package that is left out. It fails if none is.
func withoutC(ctx context.Context, cfg Config) (rest, reasons []string, err error) {
	list, err := listPackages(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	lacking := make(map[string]string) // by import path: what it lacks
	for _, p := range list {
		if lack, ok := lacksC(p); ok {
			lacking[p.ImportPath] = lack
		}
	}
	left := make(map[string]string)
	for _, p := range list {
		if p.DepOnly {
			continue
		}
		path := p.ImportPath
		if p.ForTest != "" {
			path = p.ForTest // with its tests, or the tests outside of it
		} else if strings.HasSuffix(path, ".test") {
			continue // the main package that go test would link
		}
		if !slices.Contains(rest, path) {
			rest = append(rest, path)
		}
		for _, dep := range append([]string{p.ImportPath}, p.Deps...) {
			if lack, ok := lacking[dep]; ok && left[path] == "" {
				dep, _, _ = strings.Cut(dep, " ") // for the tests of which package
				left[path] = dep + " needs C: " + lack
			}
		}
	}
	if len(left) == 0 {
		return nil, nil, errors.New("no package lacks C")
	}
	for _, path := range rest {
		if why, ok := left[path]; ok {
			reasons = append(reasons, path+": "+why)
		}
	}
	return slices.DeleteFunc(rest, func(path string) bool { return left[path] != "" }), reasons, nil
}

// listPackages lists the packages that patterns name, with their tests, and all
// that they import, compiled if possible.
func listPackages(ctx context.Context, cfg Config) ([]listed, error) {
	args := []string{"list", "-e", "-deps", "-test", "-export", "-json=ImportPath,ForTest,Dir,IgnoredGoFiles,Deps,DepOnly,Error"}
	args = append(append(args, cfg.BuildFlags...), "--")
	cmd := exec.CommandContext(ctx, "go", append(args, cfg.Patterns...)...)
	cmd.Dir = cfg.Dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var list []listed
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		list = append(list, p)
	}
}

// cErrors are what cgo, C compilers, linkers and pkg-config say when something is
// not there.
var cErrors = regexp.MustCompile(`fatal error: .*(No such file or directory|file not found)` +
	`|C compiler .* not found` +
	`|could not determine (kind of name for|what) C\.` +
	`|pkg-config` +
	`|cannot find -l|library not found|library '.*' not found|undefined reference to|Undefined symbols` +
	`|ld returned \d+ exit status|linker command failed`)

// lacksC reports whether the package does not compile for lack of C, and says what
// is missing.
func lacksC(p listed) (string, bool) {
	if p.Error == nil {
		return "", false
	}
	for line := range strings.Lines(p.Error.Err) {
		if cErrors.MatchString(line) {
			return strings.TrimSpace(line), true
		}
	}
	for _, name := range p.IgnoredGoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
		if err != nil {
			continue
		}
		for _, spec := range f.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); path == "C" {
				return "cgo is off, so " + name + " is left out", true
			}
		}
	}
	return "", false
}
