package severity

import (
	"sync"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Waits while others can't go on, or can.

type catalogue struct {
	mu    sync.RWMutex
	own   sync.Mutex
	names []string
	rows  *tensor.Tensor
	net   nn.Module
}

func (c *catalogue) nearest(q *tensor.Tensor) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.names[c.rows.MatMul(q).ArgMax().ItemInt()] // want `AT011`
}

func (c *catalogue) best(x *tensor.Tensor, k int) (names []string) {
	c.mu.RLock()
	scores, at := c.rows.MatMul(c.net.Forward(x)).TopK(k, 0, tensor.Descending)
	ids := at.Int64s()                 // want `AT011`
	for i := range scores.Float32s() { // want `AT011`
		names = append(names, c.names[ids[i]])
	}
	c.mu.RUnlock()
	return names
}

func (c *catalogue) norm() float64 {
	c.mu.RLock()
	rows := c.rows
	c.mu.RUnlock()
	return rows.Norm().Item()
}

func (c *catalogue) renormalised() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = c.rows.Sub(c.rows.Norm())
	return c.rows.Sum().Item() // want `AT011`
}

func (c *catalogue) both(q *tensor.Tensor) float64 {
	c.own.Lock()
	defer c.own.Unlock()
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.rows.MatMul(q).Sum().Item() // want `AT011`
}

func (c *catalogue) groups(groups map[string][]int64) map[string][]float32 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make(map[string][]float32, len(groups))
	for name, ids := range groups {
		sum := tensor.Zeros(c.rows.Dim(1))
		for _, id := range ids {
			sum = sum.Add(c.rows.Row(int(id)))
		}
		out[name] = sum.Float32s() // want `AT011`
	}
	return out
}

func (c *catalogue) healthy() error {
	c.own.Lock()
	defer c.own.Unlock()
	return tensor.Ones(4).Sum().Wait()
}

func (c *catalogue) ping() bool {
	c.own.Lock()
	defer c.own.Unlock()
	one := tensor.Ones(1).AddScalar(1)
	return one.Item() == 2
}

func (c *catalogue) check() error {
	c.own.Lock()
	defer c.own.Unlock()
	return c.rows.Sum().Wait() // want `AT011`
}

// Nobody writes under the first lock, and a lock that is embedded has a writer, too.

type published struct {
	mu   sync.RWMutex
	rows *tensor.Tensor
}

func (p *published) norm(q *tensor.Tensor) float64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.rows.MatMul(q).Norm().Item()
}

type replaced struct {
	sync.RWMutex
	rows *tensor.Tensor
}

func (r *replaced) norm(q *tensor.Tensor) float64 {
	r.RLock()
	defer r.RUnlock()
	return r.rows.MatMul(q).Norm().Item() // want `AT011`
}

func (other *replaced) set(rows *tensor.Tensor) {
	other.Lock()
	defer other.Unlock()
	other.rows = rows
}
