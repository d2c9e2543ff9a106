package blocking

import "github.com/asyncgen/asyncgen/analysis/tensorapi"

// UseProfiles makes the analysis know these libraries, before those that come
// with the module, until restore is called.
func UseProfiles(ps ...*tensorapi.Profile) (restore func()) {
	old := Libraries()
	known.set.Store(tensorapi.NewSet(ps...))
	return func() { known.set.Store(old) }
}
