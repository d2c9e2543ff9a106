package fuzz

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// neverMade are functions that no program has, and why.
var neverMade = map[string]string{
	"Ready":            "what it returns depends on time",
	"Elapsed":          "what it returns depends on time",
	"LogValue":         "loggers call it, and programs have none",
	"Format":           "prints call it",
	"SharesMemory":     "nobody is promised when memory is shared",
	"Changing":         "it is for those who write cells",
	"Frozen":           "it is for serving, not for loops that train",
	"Embedding":        "the programs have parameters, and no layers",
	"Dense":            "the programs have parameters, and no layers",
	"ReLU":             "the programs have parameters, and no layers",
	"Sequential":       "the programs have parameters, and no layers",
	"Forward":          "the programs have parameters, and no layers",
	"Clone":            "the programs have parameters, and no layers",
	"DataParallel":     "the programs have parameters, and no layers",
	"AllReduceOver":    "it needs a job of several processes",
	"AllGatherOver":    "it needs a job of several processes",
	"BroadcastOver":    "it needs a job of several processes",
	"SendOver":         "it needs a job of several processes",
	"ReceiveOver":      "it needs a job of several processes",
	"Gather":           "it does nothing without a job of several processes",
	"Own":              "it needs a job of several processes",
	"Renew":            "it is for those who write optimisers",
	"HasGrad":          "it is Grad with another owner, for those who write optimisers",
	"InStep":           "it is for nn.DataParallel",
	"ClipNorm":         "the programs have one optimiser, and what it does to cells is Minimize",
	"ClipValue":        "the programs have one optimiser, and what it does to cells is Minimize",
	"Observe":          "the programs have one optimiser, and what it does to cells is Minimize",
	"Scale":            "the programs have one optimiser, and what it does to cells is Minimize",
	"Update":           "the programs have one optimiser, and what it does to cells is Minimize",
	"Swap":             "the programs have one optimiser, and what it does to cells is Minimize",
	"SetGrad":          "to the tools it is Set: it gives the cell another tensor",
	"IsSet":            "the cells of programs are set",
	"Tensors":          "it is for those who save a state",
	"I64":              "the generator makes it of ItemInt",
	"RowI64":           "and this of Row",
	"SliceI64":         "and this of Slice",
	"FromI64":          "and this of From with a list, which golden files have",
	"MaskedSelect":     "the shapes of programs do not depend on values",
	"Float32sContext":  "it is Float32s with an error, as ItemContext is Item",
	"LeakyReLUF64":     "it is LeakyReLU of a number, as AddF64 is AddScalar",
	"ELUF64":           "it is ELU of a number, as AddF64 is AddScalar",
	"LerpF64":          "it is Lerp of a number, as AddF64 is AddScalar",
	"Var":              "it is made of operations that programs have",
	"VarKeep":          "it is made of operations that programs have",
	"Std":              "it is made of operations that programs have",
	"StdKeep":          "it is made of operations that programs have",
	"VectorNorm":       "it is made of operations that programs have",
	"VectorNormKeep":   "it is made of operations that programs have",
	"Median":           "it is made of operations that programs have",
	"Quantile":         "it is made of operations that programs have",
	"Outer":            "it is made of operations that programs have",
	"Trace":            "it is made of operations that programs have",
	"Meshgrid":         "it is made of operations that programs have",
	"AllClose":         "it is made of operations that programs have",
	"IsClose":          "it is made of operations that programs have",
	"RateF64":          "what the generator makes of Rate",
	"SetRateF64":       "what the generator makes of SetRate",
	"Rates":            "it is for choices, which the generator makes",
	"SetRates":         "it is for choices, which the generator makes",
	"BinCount":         "it is made of operations that programs have",
	"Einsum":           "it is made of operations that programs have",
	"CumProd":          "it scans with another operation than CumSum",
	"CumMax":           "it scans with another operation than CumSum",
	"CumMin":           "it scans with another operation than CumSum",
	"Solve":            "the CPU computes it from a copy, as the programs do with To",
	"Inverse":          "the CPU computes it from a copy, as the programs do with To",
	"Det":              "the CPU computes it from a copy, as the programs do with To",
	"Cholesky":         "the CPU computes it from a copy, as the programs do with To",
	"QR":               "the CPU computes it from a copy, as the programs do with To",
	"SVD":              "the CPU computes it from a copy, as the programs do with To",
	"Eigh":             "the CPU computes it from a copy, as the programs do with To",
	"FFT":              "the CPU computes it from a copy, as the programs do with To",
	"IFFT":             "the CPU computes it from a copy, as the programs do with To",
	"RFFT":             "the CPU computes it from a copy, as the programs do with To",
	"NonZero":          "sizes of programs do not depend on values",
	"Unique":           "sizes of programs do not depend on values",
	"Bernoulli":        "it compares what Rand draws",
	"Dropout":          "it compares what Rand draws",
	"Multinomial":      "it sorts what Rand draws",
	"Permutation":      "it sorts what RandInt draws",
	"RandLike":         "it is Rand of a shape",
	"RandnLike":        "it is Randn of a shape",
	"SearchSorted":     "it is made of operations that programs have",
	"BCELoss":          "it is made of operations that programs have",
	"BCEWithLogits":    "it is made of operations that programs have",
	"CosineEmbedding":  "it is made of operations that programs have",
	"CosineSimilarity": "it is made of operations that programs have",
	"HuberLoss":        "it is made of operations that programs have",
	"KLDiv":            "it is made of operations that programs have",
	"NLLLoss":          "it is made of operations that programs have",
}

// Every function that enqueues work or waits for it is in some program.
func TestEveryFunctionIsMade(t *testing.T) {
	missing := make(map[string]string)
	for name, f := range tensorapi.Ours().Funcs {
		at := strings.LastIndexByte(name, '.')
		short, of := name[at+1:], name[:at]
		// what the generator makes of numbers
		isNumber := strings.HasSuffix(of, "tensor.F64)") || strings.HasSuffix(of, "tensor.I64)") || strings.HasSuffix(of, "tensor.Cond)")
		isOurs := strings.Contains(of, "/runtime/tensor") || strings.HasSuffix(of, "/runtime/nn") || strings.Contains(of, "/runtime/optim")
		switch f.Kind {
		case tensorapi.View, tensorapi.Op, tensorapi.Draw, tensorapi.Value, tensorapi.Mutate, tensorapi.Read, tensorapi.Wait:
			if isOurs && !isNumber && neverMade[short] == "" {
				missing[short] = name
			}
		}
	}
	found := func(text string) {
		for name := range missing {
			if strings.Contains(text, "."+name+"(") || strings.Contains(text, "."+name+"[") {
				delete(missing, name)
			}
		}
	}
	found(header)
	programs := uint64(len(operations)) // see takeTurn
	for seed := range programs {
		found(newProgram(seed, "K").listing())
	}
	if len(missing) > 0 {
		t.Errorf("%d programs have no calls of %v", programs, missing)
	}
}

// The source of an operation names its operands in their order: that is the order in which the interpreter evaluates
// them, and each may draw random numbers.
func TestOperandsAreInOrder(t *testing.T) {
	seen := make(map[*operation]bool)
	for _, o := range slices.Concat(operations, unrounded) {
		seen[o] = true
	}
	for seed := range uint64(500) {
		for _, list := range newProgram(seed, "K").lists() {
			for _, s := range *list {
				for _, x := range s.exprs() {
					x.each(func(x *expr) { seen[x.op] = true })
				}
			}
		}
	}
	delete(seen, nil)
	for o := range seen {
		next := 0
		for _, part := range strings.Split(o.source, "$")[1:] {
			if i := int(part[0] - '0'); i > next {
				t.Errorf("%s names operand %d too early", o.source, i)
			} else if i == next {
				next++
			}
		}
		if next != len(o.args) {
			t.Errorf("%s has %d operands, want %d", o.source, next, len(o.args))
		}
	}
}

// each calls f with x and all operands.
func (x *expr) each(f func(*expr)) {
	f(x)
	for _, a := range x.args {
		a.each(f)
	}
}

// What the interpreter gives for an operation is a tensor of the kind that it is said to be.
func TestOperationsHaveTheirKind(t *testing.T) {
	for _, p := range []*program{{rows: 2, cols: 3, dtype: f32}, {rows: 3, cols: 1, dtype: f64}, {rows: 1, cols: 4, dtype: f32}} {
		like := map[kind]*value{tMat: dealer(4).matrix(p), tVec: newValue(p.dtype, []int{p.cols}), tOne: newValue(p.dtype, nil),
			tIMat: newValue(i64, p.shape()), tIOne: newValue(i64, nil), tBMat: newValue(boolean, p.shape())}
		for _, isSpoiled := range []bool{false, true} {
			for _, o := range slices.Concat(operations, unrounded, []*operation{opRow, opNumber, opProject, opCompare, opBest}) {
				want := like[o.result]
				if want == nil || slices.Contains(o.args, tMats) || isSpoiled && o.reads {
					continue
				}
				m := &machine{p: p, cells: cells{param: like[tMat], buffer: like[tMat]}}
				var args []any
				for _, k := range o.args {
					switch x := like[k]; {
					case k == tFloat:
						args = append(args, 0.5)
					case k == tInt:
						args = append(args, 0)
					case isSpoiled:
						args = append(args, spoiled(x.dtype, x.shape, &value{failed: divideByZero}))
					default:
						args = append(args, x)
					}
				}
				got := o.eval(m, args).(*value)
				if got.dtype != want.dtype || !slices.Equal(got.shape, want.shape) {
					t.Errorf("%s: %v %v, want %v %v", o.source, got.dtype, got.shape, want.dtype, want.shape)
				}
				if n := size(want.shape); got.failed == "" && len(got.floats)+len(got.ints) != n {
					t.Errorf("%s: %d elements, want %d", o.source, len(got.floats)+len(got.ints), n)
				}
				if needsOperand := slices.ContainsFunc(o.args, kind.isTensor); isSpoiled && needsOperand && got.failed != divideByZero && !strings.Contains(o.source, "$0.Device()") {
					t.Error(fmt.Sprintf("%s does not fail with its operands", o.source))
				}
			}
		}
	}
}

// The logarithm of a share is there where the share is too small for a number.
func TestLogarithmsOfTinyShares(t *testing.T) {
	x := newValue(f64, []int{2, 1})
	x.floats = []float64{0, -2000}
	if got := logSoftmax(x, 0); !slices.Equal(got.floats, []float64{0, -2000}) {
		t.Errorf("got %v, want [0 -2000]", got.floats)
	}
}

// A product and sum that float64 rounds to the middle between two neighbours of float32, which
// the rest that is lost there decides between.
func TestMultiplyAddRoundsOnce(t *testing.T) {
	a, c := 1+0x1p-12, 0x1p-70 // a*a = 1 + 0x1p-11 + 0x1p-24
	for _, test := range []struct{ a, b, c, want float64 }{
		{a, a, c, 1 + 0x1p-11 + 0x1p-23},
		{a, a, -c, 1 + 0x1p-11},
		{a, -a, c, -1 - 0x1p-11},
		{a, a, 0, 1 + 0x1p-11},                 // to even
		{0x1p-100, 0x1p-50, -0x1p-149, 0},      // to even
		{0x1p-75, 0x1p-75, 0x1p-149, 0x1p-148}, // denormal, to even
		{-1, 0, 0, 0},
		{math.Inf(1), 2, 3, math.Inf(1)},
	} {
		if got := multiplyAdd(f32, test.a, test.b, test.c); got != test.want {
			t.Errorf("%v*%v + %v is %v, want %v", test.a, test.b, test.c, got, test.want)
		}
	}
}

// TestSetEverything: a tensor that has failed spoils the result of SetIndex if a row of it is left.
func TestSetEverything(t *testing.T) {
	all := partOperations()
	set := all[slices.IndexFunc(all, func(o *operation) bool { return strings.Contains(o.source, ".SetIndex(") })]
	for rows, fails := range map[int]bool{1: false, 2: true} {
		x, y := newValue(f32, []int{rows, 3}), newValue(f32, []int{rows, 3})
		x.failed, y.floats[1] = divideByZero, 5
		got := set.eval(nil, []any{x, y}).(*value)
		if (got.failed != "") != fails || !fails && !slices.Equal(got.floats, []float64{0, 5, 0}) {
			t.Errorf("%d rows: %+v", rows, got)
		}
		x.failed, y.failed = "", divideByZero
		if got := set.eval(nil, []any{x, y}).(*value); got.failed == "" {
			t.Errorf("%d rows: it has not failed as what it is set to has", rows)
		}
	}
}
