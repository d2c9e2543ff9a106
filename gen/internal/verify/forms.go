package verify

import (
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// forms are the names of operations with a number or an index that the host knows, by the names of those with one
// that the device may still be computing.
var forms = sync.OnceValue(func() map[string]string {
	m := make(map[string]string)
	for _, f := range tensorapi.Ours().Funcs {
		prefix := f.Name[:strings.LastIndexByte(f.Name, '.')+1]
		if f.F64 != "" {
			m[prefix+f.F64] = f.Name
		}
		if f.Index != "" {
			m[prefix+f.Index] = f.Name
		}
	}
	return m
})

// hostForm returns the name of the operation for which the one with the given name stands, and whether it is another.
func hostForm(name string) (host string, isLate bool) {
	if host, ok := forms()[name]; ok {
		return host, true
	}
	return name, false
}

// isRead reports whether name is a method that reads a number.
func isRead(name string) bool { return name == item || name == itemInt }

// takesIndex reports whether the late form of a method takes a tensor in place of an index: RowAt.
func takesIndex(name string) bool { return strings.HasSuffix(name, "At") }
