package loopcall

import (
	"container/heap"
	"fmt"
	"log"
	"strings"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func anyNumber(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case *tensor.Tensor:
		return v.Item()
	case []*tensor.Tensor:
		for range v {
			return v[0].Item()
		}
	}
	return 0
}

func float(v any) float64 {
	if t, ok := v.(*tensor.Tensor); ok {
		return t.Item()
	}
	f, _ := v.(float64)
	return f
}

func floats(vs ...any) (list []float64) {
	for _, v := range vs {
		if t, ok := v.(*tensor.Tensor); ok {
			list = append(list, t.Item())
		}
	}
	return list
}

func texts(args ...any) string {
	var b strings.Builder
	for _, a := range args {
		fmt.Fprint(&b, a, " ")
	}
	return b.String()
}

func fields(m map[string]any) {
	for k, v := range m {
		log.Println(k, v)
	}
}

func asserted(data []Batch) (total float64) {
	item := (*tensor.Tensor).Item
	for i, b := range data {
		total += anyNumber(batch.Loss(w, b))      // want `anyNumber waits`
		total += float(batch.Loss(w, b))          // want `float waits`
		total += floats(1.5, batch.Loss(w, b))[0] // want `floats waits`
		total += anyNumber(float64(i)) + float(2.5) + floats()[0]
		log.Print(texts(i, "loss"))
		fields(map[string]any{"step": i})
		total += item(batch.Loss(w, b))                  // AT001
		log.Print(texts(i, batch.Loss(w, b)))            // AT004
		fields(map[string]any{"loss": batch.Loss(w, b)}) // AT004
	}
	return total
}

type queue []*tensor.Tensor

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].Item() < q[j].Item() }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*tensor.Tensor)) }
func (q *queue) Pop() (x any) {
	x, *q = (*q)[len(*q)-1], (*q)[:len(*q)-1]
	return x
}

func ordered(data []Batch) *queue {
	q := new(queue)
	for _, b := range data {
		heap.Push(q, batch.Loss(w, b)) // want `q.Less waits for the device in each comparison`
	}
	return q
}

// entries has an entry for each name, so most iterations wait.
func entries(data []Batch, names []string) map[string]float64 {
	scores := make(map[string]float64)
	for i, name := range names {
		if _, ok := scores[name]; ok {
			continue
		}
		scores[name] = score(data[i]) // want `score waits`
	}
	return scores
}
