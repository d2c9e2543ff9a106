package tensor

// What programs that follow gradients use.

func Stack(axis int, ts ...*Tensor) *Tensor   { return nil }
func Concat(axis int, ts ...*Tensor) *Tensor  { return nil }
func FullInt(v int64, shape ...int) *Tensor   { return nil }
func Grad(y *Tensor, xs ...*Tensor) []*Tensor { return nil }

func (t *Tensor) ArgMax(axes ...int) *Tensor             { return nil }
func (t *Tensor) Square() *Tensor                        { return nil }
func (t *Tensor) AddScaled(y *Tensor, c float64) *Tensor { return nil }
func (t *Tensor) Take(axis int, index *Tensor) *Tensor   { return nil }
func (t *Tensor) T() *Tensor                             { return nil }
func (t *Tensor) Track() *Tensor                         { return nil }
func (t *Tensor) Min(axes ...int) *Tensor                { return nil }
func (t *Tensor) Max(axes ...int) *Tensor                { return nil }
func (t *Tensor) Int64s() []int64                        { return nil }

func (p *Param) Frozen() *Param { return nil }
func (p *Param) Grad() *Tensor  { return nil }
func (p *Param) ZeroGrad()      {}

func RandnLike(t *Tensor) *Tensor { return nil }

func (t *Tensor) Solve(y *Tensor) *Tensor                     { return nil }
func (t *Tensor) IsNaN() *Tensor                              { return nil }
func (t *Tensor) Any(axes ...int) *Tensor                     { return nil }
func (t *Tensor) SetIndex(value *Tensor, at ...Index) *Tensor { return nil }

type Index struct{ _ int }

func At(i int) Index { return Index{} }

//go:noinline
func All() Index { return Index{} }

//go:noinline
func Range(from, to int) Index { return Index{} }

//go:noinline
func (t *Tensor) IndexCopy(axis int, index, src *Tensor) *Tensor { return nil }

//go:noinline
func (t *Tensor) IndexAdd(axis int, index, src *Tensor) *Tensor { return nil }

//go:noinline
func (t *Tensor) Index(at ...Index) *Tensor { return nil }

//go:noinline
func (t *Tensor) Inverse() *Tensor { return nil }

func (t *Tensor) SVD() (u, s, vt *Tensor) { return nil, nil, nil }

// What depends on values, and operations with numbers.

func (t *Tensor) Unique() *Tensor                   { return nil }
func (t *Tensor) NonZero() *Tensor                  { return nil }
func (t *Tensor) MaskedSelect(mask *Tensor) *Tensor { return nil }
func (t *Tensor) Size() int                         { return 0 }
func (t *Tensor) DivScalar(c float64) *Tensor       { return nil }
func (t *Tensor) SubScalar(c float64) *Tensor       { return nil }
func (t *Tensor) Clamp(lo, hi float64) *Tensor      { return nil }
func (t *Tensor) Std(ddof int, axes ...int) *Tensor { return nil }
func (t *Tensor) Softmax(axis int) *Tensor          { return nil }
func (t *Tensor) GtScalar(c float64) *Tensor        { return nil }

func (t *Tensor) Sort(axis int, order Order) *Tensor    { return nil }
func (t *Tensor) ArgSort(axis int, order Order) *Tensor { return nil }
