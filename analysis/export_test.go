package analysis

var Skip = skip

// UseTools pretends that the program was built with a version of x/tools.
func UseTools(version string) { toolsVersion = func() string { return version } }
