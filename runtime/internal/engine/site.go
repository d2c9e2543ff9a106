package engine

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// The line that a user knows an operation by is that of the first caller outside
// the library. Finding it takes a walk up the stack, which costs a nanosecond or two
// for each frame, and knowing which return addresses are ours, which a table remembers
// after the first time. So an operation carries one program counter however deep in the library it was enqueued.

// A site is a place in the user's program.
type site struct {
	file, fn string
	line     int
}

// callerPC returns the return address in the first frame outside the library, or 0.
func callerPC() uintptr {
	var pcs [8]uintptr
	for skip := 0; ; skip += len(pcs) {
		n := framePCs(&pcs, skip)
		for _, pc := range pcs[:n] {
			if isUser(pc) {
				return pc
			}
		}
		if n < len(pcs) {
			return 0
		}
	}
}

// known is what we know about return addresses: an open-addressed table that is replaced as a whole when it changes.
var known atomic.Pointer[pcTable]

var knownMu sync.Mutex // held while a table is replaced

type pcTable struct {
	pcs   []uintptr // 0: free; the length is a power of two
	sites []*site   // nil: in the library
	used  int
}

func (t *pcTable) find(pc uintptr) int {
	mask := uintptr(len(t.pcs) - 1)
	for i := pc * 0x9e3779b1 >> 8 & mask; ; i = (i + 1) & mask {
		if t.pcs[i] == pc || t.pcs[i] == 0 {
			return int(i)
		}
	}
}

func (t *pcTable) put(pc uintptr, s *site) {
	i := t.find(pc)
	t.pcs[i], t.sites[i] = pc, s
	t.used++
}

func isUser(pc uintptr) bool { return siteOf(pc) != nil }

// siteOf returns the place of a return address, or nil if it is in the library.
func siteOf(pc uintptr) *site {
	if t := known.Load(); t != nil {
		if i := t.find(pc); t.pcs[i] == pc {
			return t.sites[i]
		}
	}
	return learn(pc)
}

func learn(pc uintptr) *site {
	if pc == 0 {
		return nil
	}
	knownMu.Lock()
	defer knownMu.Unlock()
	old := known.Load()
	size := 256
	if old != nil {
		if i := old.find(pc); old.pcs[i] == pc {
			return old.sites[i]
		}
		size = len(old.pcs)
		if old.used*4 > size {
			size *= 2
		}
	}
	t := &pcTable{pcs: make([]uintptr, size), sites: make([]*site, size)}
	if old != nil {
		for i, p := range old.pcs {
			if p != 0 {
				t.put(p, old.sites[i])
			}
		}
	}
	s := resolve(pc)
	t.put(pc, s)
	known.Store(t)
	return s
}

// resolve finds the first function at pc, which may stand for several if some were inlined, that is the user's.
func resolve(pc uintptr) *site {
	frames := runtime.CallersFrames([]uintptr{pc})
	for {
		f, more := frames.Next()
		if f.Function != "" && !isOurs(f.Function, f.File) {
			return &site{file: f.File, line: f.Line, fn: f.Function}
		}
		if !more {
			return nil
		}
	}
}

const module = "github.com/asyncgen/asyncgen/"

// isOurs reports whether a function is part of the library, or of the standard library's means to call
// methods on our behalf: the user's line of fmt.Println(t) is that of Println. Tests are users.
func isOurs(fn, file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	// The package is what stands before the first dot after the last slash.
	dir, name := "", fn
	if i := strings.LastIndexByte(fn[:len(fn)-len(afterBracket(fn))], '/'); i >= 0 {
		dir, name = fn[:i+1], fn[i+1:]
	}
	pkg, _, _ := strings.Cut(name, ".")
	path := dir + pkg
	if rest, ok := strings.CutPrefix(path, module); ok {
		top, _, _ := strings.Cut(rest, "/")
		return top == "runtime" || top == "device"
	}
	top, _, _ := strings.Cut(path, "/")
	return callers[top]
}

// afterBracket returns what of a function's name follows a type argument list, whose slashes are not the package's.
func afterBracket(fn string) string {
	if i := strings.IndexByte(fn, '['); i >= 0 {
		return fn[i:]
	}
	return ""
}

// callers are the trees of the standard library that call methods and functions given to them.
var callers = map[string]bool{
	"runtime": true, "fmt": true, "log": true, "encoding": true, "reflect": true, "text": true, "html": true,
	"sync": true, "slices": true, "sort": true, "maps": true, "iter": true, "internal": true, "errors": true,
}
