package fuzz

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// A dtype is the element type of a value.
type dtype uint8

const (
	f32 dtype = iota
	f64
	i64
	boolean
)

func (d dtype) isFloat() bool { return d <= f64 }

// goName is how source calls d.
func (d dtype) goName() string { return [...]string{"Float32", "Float64", "Int64", "Bool"}[d] }

// String is how the library calls d.
func (d dtype) String() string { return [...]string{"float32", "float64", "int64", "bool"}[d] }

// A value is a tensor as the interpreter has it: elements in row-major order,
// each computed when the operation is called. It shares nothing with the
// library: what an operation gives is written down here a second time, from its
// documentation.
type value struct {
	dtype  dtype
	shape  []int
	floats []float64 // of float and bool elements: true is 1
	ints   []int64
	failed string // why there are no elements
}

func newValue(d dtype, shape []int) *value {
	v := &value{dtype: d, shape: slices.Clone(shape)}
	if n := size(shape); d == i64 {
		v.ints = make([]int64, n)
	} else {
		v.floats = make([]float64, n)
	}
	return v
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// divideByZero is why the one operation that depends on values fails.
const divideByZero = "an integer is divided by zero"

// spoiled returns the value that an operation gives whose operand failed, or nil.
func spoiled(d dtype, shape []int, operands ...*value) *value {
	for _, x := range operands {
		if x.failed != "" {
			return &value{dtype: d, shape: slices.Clone(shape), failed: x.failed}
		}
	}
	return nil
}

// round brings the exact-enough result of one operation to the precision of d.
// One rounding to float64 before it changes nothing for + - * / and the root.
func round(d dtype, x float64) float64 {
	if d == f32 {
		return float64(float32(x))
	}
	return x
}

// broadcast returns the shape that operands of shapes a and b have together,
// which the programs are made to have.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := slices.Clone(a)
	for i, n := range b {
		if at := len(a) - len(b) + i; shape[at] == 1 {
			shape[at] = n
		}
	}
	return shape
}

// from is where the element of shape at place i of the wider shape to is.
func from(to, shape []int, i int) int {
	at, stride := 0, 1
	for axis := len(to) - 1; axis >= 0; axis-- {
		k := i % to[axis]
		i /= to[axis]
		if own := axis - (len(to) - len(shape)); own >= 0 {
			if shape[own] > 1 {
				at += k * stride
			}
			stride *= shape[own]
		}
	}
	return at
}

// zip combines two values of one type element by element.
func zip(x, y *value, floats func(a, b float64) float64, ints func(a, b int64) int64) *value {
	shape := broadcast(x.shape, y.shape)
	if s := spoiled(x.dtype, shape, x, y); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	for i := range size(shape) {
		a, b := from(shape, x.shape, i), from(shape, y.shape, i)
		if x.dtype == i64 {
			z.ints[i] = ints(x.ints[a], y.ints[b])
		} else {
			z.floats[i] = round(x.dtype, floats(x.floats[a], y.floats[b]))
		}
	}
	return z
}

// each applies a function to every element.
func each(x *value, floats func(float64) float64, ints func(int64) int64) *value {
	if s := spoiled(x.dtype, x.shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, x.shape)
	for i, a := range x.ints {
		z.ints[i] = ints(a)
	}
	for i, a := range x.floats {
		z.floats[i] = round(x.dtype, floats(a))
	}
	return z
}

func add(x, y *value) *value {
	return zip(x, y, func(a, b float64) float64 { return a + b }, func(a, b int64) int64 { return a + b })
}

func sub(x, y *value) *value {
	return zip(x, y, func(a, b float64) float64 { return a - b }, func(a, b int64) int64 { return a - b })
}

func mul(x, y *value) *value {
	return zip(x, y, func(a, b float64) float64 { return a * b }, func(a, b int64) int64 { return a * b })
}

func div(x, y *value) *value {
	if x.dtype == i64 && x.failed == "" && slices.Contains(y.ints, 0) {
		return &value{dtype: i64, shape: broadcast(x.shape, y.shape), failed: divideByZero}
	}
	return zip(x, y, func(a, b float64) float64 { return a / b }, func(a, b int64) int64 { return a / b })
}

func greater(x, y *value) *value {
	return zip(x, y, func(a, b float64) float64 { return max(a, b) }, func(a, b int64) int64 { return max(a, b) })
}

func lesser(x, y *value) *value {
	return zip(x, y, func(a, b float64) float64 { return min(a, b) }, func(a, b int64) int64 { return min(a, b) })
}

// scalar is the constant c in the type of like.
func scalar(like *value, c float64) *value {
	v := newValue(like.dtype, nil)
	if like.dtype == i64 {
		v.ints[0] = int64(c)
	} else {
		v.floats[0] = round(like.dtype, c)
	}
	return v
}

// compare gives a bool for each pair of float elements.
func compare(x, y *value, is func(a, b float64) bool) *value {
	shape := broadcast(x.shape, y.shape)
	if s := spoiled(boolean, shape, x, y); s != nil {
		return s
	}
	z := newValue(boolean, shape)
	for i := range z.floats {
		z.floats[i] = truth(is(x.floats[from(shape, x.shape, i)], y.floats[from(shape, y.shape, i)]))
	}
	return z
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// where chooses elements of x and y, which have the shape of cond.
func where(cond, x, y *value) *value {
	if s := spoiled(x.dtype, cond.shape, cond, x, y); s != nil {
		return s
	}
	z := newValue(x.dtype, cond.shape)
	for i, c := range cond.floats {
		if z.floats[i] = y.floats[i]; c != 0 {
			z.floats[i] = x.floats[i]
		}
	}
	return z
}

// as converts elements.
func as(x *value, d dtype) *value {
	if x.dtype == d {
		return x
	}
	if s := spoiled(d, x.shape, x); s != nil {
		return s
	}
	z := newValue(d, x.shape)
	for i := range size(x.shape) {
		switch {
		case d == boolean && x.dtype == i64:
			z.floats[i] = truth(x.ints[i] != 0)
		case d == boolean:
			z.floats[i] = truth(x.floats[i] != 0)
		case d == i64:
			z.ints[i] = truncated(x.floats[i])
		case x.dtype == i64 && d == f32:
			z.floats[i] = float64(float32(x.ints[i]))
		case x.dtype == i64:
			z.floats[i] = float64(x.ints[i])
		default:
			z.floats[i] = round(d, x.floats[i])
		}
	}
	return z
}

// bfloat16 is the nearest number with 8 significant bits and the exponents of float32, ties to even.
func bfloat16(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, exponent := math.Frexp(x)
	place := math.Ldexp(1, max(exponent, -125)-8) // of the last bit
	y := math.Copysign(math.RoundToEven(x/place)*place, x)
	if math.Abs(y) >= 0x1p128 {
		return math.Copysign(math.Inf(1), x)
	}
	return y
}

// truncated is x without what is behind the point, as near to it as an int64 can be.
func truncated(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= 1<<63:
		return math.MaxInt64
	case x < -1<<63:
		return math.MinInt64
	}
	return int64(x)
}

// reduce folds along axis, or over everything if axis is negative, in the
// order that is documented for short lengths: as many lanes as the next power of two,
// each of which takes its element after the identity; then halves are combined.
func reduce(x *value, axis int, floats func(a, b float64) float64, ints func(a, b int64) int64, identity float64) *value {
	outer, n, inner := 1, size(x.shape), 1
	var shape []int
	if axis >= 0 {
		outer, n, inner = size(x.shape[:axis]), x.shape[axis], size(x.shape[axis+1:])
		shape = slices.Delete(slices.Clone(x.shape), axis, axis+1)
	}
	if s := spoiled(x.dtype, shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	width := 1
	for width < n {
		width *= 2
	}
	for o := range outer {
		for i := range inner {
			fs, is := make([]float64, width), make([]int64, width)
			for lane := range width {
				fs[lane], is[lane] = identity, int64(identity)
				if lane < n && x.dtype == i64 {
					is[lane] = ints(is[lane], x.ints[(o*n+lane)*inner+i])
				} else if lane < n {
					fs[lane] = round(x.dtype, floats(fs[lane], x.floats[(o*n+lane)*inner+i]))
				}
			}
			for half := width / 2; half > 0; half /= 2 {
				for lane := range half {
					if x.dtype == i64 {
						is[lane] = ints(is[lane], is[lane+half])
					} else {
						fs[lane] = round(x.dtype, floats(fs[lane], fs[lane+half]))
					}
				}
			}
			if x.dtype == i64 {
				z.ints[o*inner+i] = is[0]
			} else {
				z.floats[o*inner+i] = fs[0]
			}
		}
	}
	return z
}

func sum(x *value, axis int) *value {
	return reduce(x, axis, func(a, b float64) float64 { return a + b }, func(a, b int64) int64 { return a + b }, 0)
}

func prod(x *value) *value {
	return reduce(x, -1, func(a, b float64) float64 { return a * b }, func(a, b int64) int64 { return a * b }, 1)
}

func most(x *value, axis int) *value {
	return reduce(x, axis, func(a, b float64) float64 { return max(a, b) }, nil, math.Inf(-1))
}

func least(x *value, axis int) *value {
	return reduce(x, axis, func(a, b float64) float64 { return min(a, b) }, nil, math.Inf(1))
}

func mean(x *value, axis int) *value {
	n := size(x.shape)
	if axis >= 0 {
		n = x.shape[axis]
	}
	s := sum(x, axis)
	return div(s, scalar(s, float64(n)))
}

// matmul is the product of two matrices, each element accumulated in
// increasing order. Whether a step rounds once or twice depends on the
// processor, so there is an answer only where both come to the same: exact is
// false if they don't.
func matmul(x, y *value) (z *value, exact bool) {
	n, k, m := x.shape[0], x.shape[1], y.shape[1]
	if s := spoiled(x.dtype, []int{n, m}, x, y); s != nil {
		return s, true
	}
	z, exact = newValue(x.dtype, []int{n, m}), true
	for i := range n {
		for j := range m {
			once, twice := 0.0, 0.0
			for p := range k {
				a, b := x.floats[i*k+p], y.floats[p*m+j]
				once = multiplyAdd(x.dtype, a, b, once)
				twice = round(x.dtype, twice+round(x.dtype, a*b))
			}
			z.floats[i*m+j] = twice
			exact = exact && (math.Float64bits(once) == math.Float64bits(twice) || once != once && twice != twice)
		}
	}
	return z, exact
}

// multiplyAdd is a*b + c, rounded once. In float64 it has been rounded already when it is rounded to float32,
// which is to say twice: that matters where the first result is in the middle between two neighbours.
func multiplyAdd(d dtype, a, b, c float64) float64 {
	sum := math.FMA(a, b, c)
	if d != f32 || math.IsNaN(sum) || math.IsInf(sum, 0) || sum == 0 {
		return round(d, sum)
	}
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(x) }
	r := exact(a)
	rounded, _ := r.Mul(r, exact(b)).Add(r, exact(c)).Float32()
	return float64(rounded)
}

// transpose swaps the axes of a matrix.
func transpose(x *value) *value {
	n, m := x.shape[0], x.shape[1]
	if s := spoiled(x.dtype, []int{m, n}, x); s != nil {
		return s
	}
	z := newValue(x.dtype, []int{m, n})
	for i := range n {
		for j := range m {
			if x.dtype == i64 {
				z.ints[j*n+i] = x.ints[i*m+j]
			} else {
				z.floats[j*n+i] = x.floats[i*m+j]
			}
		}
	}
	return z
}

// reshape gives x another shape of the same size.
func reshape(x *value, shape ...int) *value {
	z := *x
	z.shape = shape
	return &z
}

// part is the elements from place at of a float or int64 value, in another shape.
func part(x *value, at int, shape ...int) *value {
	if s := spoiled(x.dtype, shape, x); s != nil {
		return s
	}
	z := newValue(x.dtype, shape)
	if x.dtype == i64 {
		copy(z.ints, x.ints[at:])
	} else {
		copy(z.floats, x.floats[at:])
	}
	return z
}

// full is x's element, or its elements, repeated to a shape.
func full(x *value, shape []int) *value {
	zeros := newValue(x.dtype, shape)
	return zip(x, zeros, func(a, _ float64) float64 { return a }, func(a, _ int64) int64 { return a })
}

// A stream is the state of a generator of random numbers.
type stream struct{ Key, Pos uint64 }

// philox is a block of Philox4x32-10 (Salmon and others, SC11): word 2 of the
// counter tells the sequences apart.
func philox(number, key uint64, tag uint32) [4]uint32 {
	c := [4]uint64{number & math.MaxUint32, number >> 32, uint64(tag), 0}
	k := [2]uint64{key & math.MaxUint32, key >> 32}
	for range 10 {
		hi0, lo0 := c[0]*0xD2511F53>>32, c[0]*0xD2511F53&math.MaxUint32
		hi1, lo1 := c[2]*0xCD9E8D57>>32, c[2]*0xCD9E8D57&math.MaxUint32
		c = [4]uint64{hi1 ^ c[1] ^ k[0], lo1, hi0 ^ c[3] ^ k[1], lo0}
		k[0], k[1] = (k[0]+0x9E3779B9)&math.MaxUint32, (k[1]+0xBB67AE85)&math.MaxUint32
	}
	return [4]uint32{uint32(c[0]), uint32(c[1]), uint32(c[2]), uint32(c[3])}
}

// uniform draws float32 numbers from [0, 1).
func (g *stream) uniform(shape []int) *value {
	z := newValue(f32, shape)
	for i := range z.floats {
		w := philox(g.Pos/4, g.Key, 0)
		z.floats[i] = float64(w[g.Pos%4]>>8) / (1 << 24)
		g.Pos++
	}
	return z
}

// integers draws from lo to hi-1.
func (g *stream) integers(lo, hi int64, shape []int) *value {
	z := newValue(i64, shape)
	for i := range z.ints {
		w := philox(g.Pos/2, g.Key, 4)
		at := g.Pos % 2 * 2
		high, _ := bits.Mul64(uint64(w[at])|uint64(w[at+1])<<32, uint64(hi-lo))
		z.ints[i] = lo + int64(high)
		g.Pos++
	}
	return z
}
