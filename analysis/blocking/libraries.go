package blocking

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// known is what the analysis knows of tensor libraries. Flags are set, in one
// goroutine, before the analysis begins in many.
var known struct {
	files []string
	own   []*tensorapi.Profile // of the files
	set   atomic.Pointer[tensorapi.Set]
}

// Libraries is the set of libraries that are known.
func Libraries() *tensorapi.Set {
	if s := known.set.Load(); s != nil {
		return s
	}
	known.set.CompareAndSwap(nil, tensorapi.NewSet(known.own...))
	return known.set.Load()
}

// LoadProfiles makes the libraries known that a file tells of, see
// [tensorapi.Load]. They go before those that come with the module. Using a file
// again changes nothing.
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

// IsLibrary reports whether a library has something to say about the package
// with the given import path, so that what imports it is to be analysed.
func IsLibrary(path string) bool { return len(Libraries().About(path)) > 0 }
