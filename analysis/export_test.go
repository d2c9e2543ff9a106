package analysis

// Skip reads the description of a unit and skips it if it can.
func Skip(name string) bool {
	u, ok := readUnit(name)
	return ok && u.skip()
}

// UseTools pretends that the program was built with a version of x/tools.
func UseTools(version string) { toolsVersion = func() string { return version } }
