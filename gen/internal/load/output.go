package load

import (
	"fmt"
	"go/constant"
	"go/types"
)

// otherOutput returns that code of version [Output] does not compile with runtime, or nil.
func otherOutput(runtime *types.Package) error {
	oldest, newest := outputVersion(runtime, "OldestOutput"), outputVersion(runtime, "NewestOutput")
	switch {
	case Output > newest:
		return fmt.Errorf("load: this asyncgen is newer than the %s that the module uses: run the one that comes with it, go tool asyncgen, or upgrade the module", RuntimePath)
	case Output < oldest:
		return fmt.Errorf("load: this asyncgen is older than the %s that the module uses: run the one that comes with it, go tool asyncgen", RuntimePath)
	}
	return nil
}

// outputVersion is the value of a constant of runtime, 0 if that has no such constant.
func outputVersion(runtime *types.Package, name string) int64 {
	c, ok := runtime.Scope().Lookup(name).(*types.Const)
	if !ok {
		return 0
	}
	v, _ := constant.Int64Val(c.Val())
	return v
}
