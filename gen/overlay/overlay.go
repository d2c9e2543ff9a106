// Package overlay hands rewritten source files to the go command without
// touching the ones on disk. It is what asyncgen run, build and test use, and
// it knows nothing of how the files came about.
//
//	o, err := overlay.New(map[string][]byte{"/home/me/x/train.go": text})
//	if err != nil { ... }
//	defer o.Close()
//	overlay.Command(ctx, "build", o.Flag(), "./x").Run()
package overlay

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/asyncgen/asyncgen/gen"
)

// An Overlay is a folder of replaced files and the list of what they replace.
type Overlay struct {
	dir string
}

// Of returns an overlay of the files that were generated with Config.All.
func Of(r *gen.Result) (*Overlay, error) {
	files := make(map[string][]byte)
	for _, f := range r.Files {
		files[f.Path] = f.Text
	}
	return New(files)
}

// New returns an overlay in which the files with the given absolute paths have
// the given text. Files that do not exist may be among them.
func New(files map[string][]byte) (o *Overlay, err error) {
	dir, err := os.MkdirTemp("", "asyncgen-overlay-")
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	o = &Overlay{dir}
	defer func() {
		if err != nil {
			o.Close()
		}
	}()
	replace := make(map[string]string, len(files))
	for i, path := range slices.Sorted(maps.Keys(files)) {
		// The compiler names the file by its line directive; the name here
		// only has to keep the suffixes that restrict when it is built.
		to := filepath.Join(dir, fmt.Sprintf("%d_%s", i, filepath.Base(path)))
		if err := os.WriteFile(to, files[path], 0o600); err != nil {
			return nil, fmt.Errorf("overlay: %w", err)
		}
		replace[path] = to
	}
	list, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	if err := os.WriteFile(o.JSON(), list, 0o600); err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	return o, nil
}

// JSON is the path of the file that go build -overlay wants.
func (o *Overlay) JSON() string { return filepath.Join(o.dir, "overlay.json") }

// Flag is the flag of the go command that applies the overlay.
func (o *Overlay) Flag() string { return "-overlay=" + o.JSON() }

// Close removes the files.
func (o *Overlay) Close() error { return os.RemoveAll(o.dir) }
