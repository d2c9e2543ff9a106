package load

import "slices"

// Rules are the names of the rewrites that a directive can switch off.
func Rules() []string { return slices.Clone(rules) }
