package blocking

import (
	"fmt"
	"go/types"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// The profiles that all analyses of the process use: those that come with the module, and those from
// files that the user names. They are a global because analyzers have no other place for what they
// share, and flags set them before any analysis starts.

// known is what the process knows of tensor libraries. Flags set files and own in one goroutine, before
// analyses begin in many; only set changes later, when the first analysis asks for it.
var known struct {
	files []string
	own   []*tensorapi.Profile // of the files
	set   atomic.Pointer[tensorapi.Set]
}

// Libraries is the set of known libraries. It is made at the first call, as parsing is not free.
func Libraries() *tensorapi.Set {
	if s := known.set.Load(); s != nil {
		return s
	}
	known.set.CompareAndSwap(nil, tensorapi.NewSet(known.own...))
	return known.set.Load()
}

// LoadProfiles adds the libraries that a file describes, see [tensorapi.Load]. They are asked before
// those that come with the module. Loading a file again changes nothing.
func LoadProfiles(file string) error {
	if slices.Contains(known.files, file) {
		return nil
	}
	if !filepath.IsAbs(file) {
		// The tool of go vet runs in the folder of each package in turn.
		return fmt.Errorf("%s: the name of a file with profiles has to be absolute", file)
	}
	own, err := tensorapi.Load(file, nil)
	if err != nil {
		return err
	}
	known.files = append(known.files, file)
	known.own = append(known.own, own...)
	known.set.Store(nil)
	return nil
}

// IsLibrary reports whether a library has something to say about the package with the given import
// path. Its importers can reach a tensor, and are analysed.
func IsLibrary(path string) bool { return len(Libraries().About(path)) > 0 }

// owned reports whether the package is part of a tensor library. The library's profile says all there
// is to know of such a package, so its code is not analysed.
func owned(path string) bool { return Libraries().Owner(path) != nil }

// lookup returns what a profile says about fn, and false if no profile has fn.
func lookup(fn *types.Func) (tensorapi.Func, bool) {
	f, lib := Libraries().Lookup(fn)
	return f, lib != nil
}
