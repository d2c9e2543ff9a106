package op

import (
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// MaxChain is how many operations one command computes at most. More gain little: a command of that many is bound by
// its arithmetic, not by memory.
const MaxChain = 24

// A Link is one elementwise operation of a chain: a kernel of code Map, whose Body is an expression, and where its
// operands come from.
type Link struct {
	kernel uint32 // its ID, see Kernel.ID: so that a Link is its bytes
	// In[i] is where operand i comes from: from the result of an earlier link, which has this number, or from operand
	// ^In[i] of the chain.
	In [MaxInputs]int8
	// Imm is the number that the link's first constant has in the chain.
	Imm uint8
}

// A Chain is a list of links. The last one makes the result. Each of the others makes an operand of later ones.
type Chain struct {
	links   [MaxChain]Link
	kernels [MaxChain]*device.Kernel
	n       int
}

// Add appends a link with the given kernel, and returns its number.
func (c *Chain) Add(k *device.Kernel, l Link) int8 {
	l.kernel = uint32(k.ID)
	c.links[c.n], c.kernels[c.n] = l, k
	c.n++
	return int8(c.n - 1)
}

// Kernel returns a kernel that has the bits of the links done one after the other. Chains with the same links have the
// same kernel. Kernels are never freed. So Kernel returns nil if there are very many kernels of chains: the program
// seems to need a new one each time.
func (c *Chain) Kernel() *device.Kernel {
	if c.isWhole() {
		return c.kernels[0]
	}
	key := unsafe.Slice((*byte)(unsafe.Pointer(&c.links)), uintptr(c.n)*unsafe.Sizeof(Link{}))
	chains.RLock()
	k := chains.kernels[string(key)]
	chains.RUnlock()
	if k != nil {
		return k
	}
	chains.Lock()
	defer chains.Unlock()
	if k := chains.kernels[string(key)]; k != nil {
		return k
	}
	if len(chains.kernels) >= maxChains {
		return nil
	}
	if chains.kernels == nil {
		chains.kernels = map[string]*device.Kernel{}
	}
	k = c.compile()
	chains.kernels[string(key)] = k
	return k
}

// isWhole reports whether the chain is one operation on operands that differ.
func (c *Chain) isWhole() bool {
	for i := range c.kernels[0].In {
		if c.links[0].In[i] != ^int8(i) {
			return false
		}
	}
	return c.n == 1
}

// maxChains is how many chains get a kernel of their own.
const maxChains = 1 << 14

// chains holds the kernels of all chains, by the bytes of their links.
var chains struct {
	sync.RWMutex
	kernels map[string]*device.Kernel
}

// compile puts the expressions of the links together.
func (c *Chain) compile() *device.Kernel {
	var of [MaxChain]*kernel.Expr
	var in []device.DType
	var name strings.Builder
	for n, l := range c.links[:c.n] {
		k := c.kernels[n]
		body := k.Body.(*kernel.Expr)
		as := map[*kernel.Expr]*kernel.Expr{}
		for _, x := range body.Nodes() {
			switch x.Kind() {
			case kernel.Operand:
				if from := l.In[x.Index()]; from >= 0 {
					as[x] = of[from]
				} else {
					as[x] = kernel.Arg(int(^from), x.DType())
				}
			case kernel.Immediate:
				as[x] = kernel.Imm(int(l.Imm)+x.Index(), x.DType())
			}
		}
		of[n] = replace(body, as)
		for i, dt := range k.In {
			if from := l.In[i]; from < 0 {
				for len(in) <= int(^from) {
					in = append(in, dt)
				}
				in[^from] = dt
			}
		}
		if n > 0 {
			name.WriteByte('+')
		}
		name.WriteString(k.Name)
	}
	last := c.kernels[c.n-1]
	return device.NewKernel(name.String(), device.Map, of[c.n-1], last.Out, in...)
}

// Cast returns the kernel of As from one type to another.
func Cast(from, to device.DType) *device.Kernel {
	return casts[from].of(to, func() *device.Kernel {
		return device.NewKernel("As", device.Map, kernel.Cast(kernel.Arg(0, from), to), to, from)
	})
}

// IsDear reports whether k, of code Map, computes a function such as exp: its result is sooner read from memory than
// computed once more.
func IsDear(k *device.Kernel) bool {
	if is, ok := dear.Load(k); ok {
		return is.(bool)
	}
	is := slices.ContainsFunc(k.Body.(*kernel.Expr).Nodes(), func(x *kernel.Expr) bool {
		return x.Kind() == kernel.Application && (x.Prim() == kernel.PrimPow || x.Prim() == kernel.PrimMod || kernel.PrimExp <= x.Prim() && x.Prim() <= kernel.PrimErf)
	})
	dear.Store(k, is)
	return is
}

var dear sync.Map // the results of IsDear
