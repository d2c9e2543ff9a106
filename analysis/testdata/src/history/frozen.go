package history

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Models of users' types, frozen as a whole.

type factors struct{ users, items nn.Module }

func newFactors() *factors { return &factors{nn.Dense(3), nn.Dense(3)} }

func (f *factors) predict(b batch.Batch) *tensor.Tensor {
	return f.users.Forward(b.X).Mul(f.items.Forward(b.Y))
}

func (f *factors) score(data []batch.Batch) float64 {
	now := nn.Frozen(f)
	sum, raw := tensor.Zeros(), tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(now.predict(b))
		raw = raw.Add(f.predict(b)) // want `AT023`
	}
	return sum.Item() + raw.Item()
}

func frozenFirst(f *factors, data []batch.Batch) float64 {
	f = nn.Frozen(f)
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(f.predict(b))
	}
	return sum.Item()
}

// Not always, or too late.
func frozenPerhaps(f *factors, data []batch.Batch, really bool) float64 {
	if really {
		f = nn.Frozen(f)
	}
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(f.predict(b)) // want `AT023`
	}
	return sum.Item()
}

func frozenLate(f *factors, data []batch.Batch) float64 {
	sum := tensor.Zeros()
	for _, b := range data {
		sum = sum.Add(f.predict(b)) // want `AT023`
	}
	f = nn.Frozen(f)
	return sum.Item() + f.predict(data[0]).Item()
}
