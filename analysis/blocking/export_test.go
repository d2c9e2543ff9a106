package blocking

import "github.com/asyncgen/asyncgen/analysis/tensorapi"

// UseProfiles makes the analysis know other libraries until restore is called.
func UseProfiles(ps ...*tensorapi.Profile) (restore func()) {
	old := profiles
	profiles = ps
	return func() { profiles = old }
}
