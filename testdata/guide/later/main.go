// Command later is the program waits, rewritten by hand.
package main

import (
	"fmt"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func descend(x *tensor.Tensor, steps int) (history []float64) {
	later := asyncrt.NewLater[struct{}](64) // at most 64 steps ahead
	defer later.Close()
	for range steps {
		x = x.Sub(x.MulScalar(0.1))
		heightAt := later.Read(x.Square().Sum())
		later.Do(func() { history = append(history, heightAt.Item()) })
	}
	later.Flush()
	return history
}

func main() {
	tensor.Seed(1)
	var history []float64
	asyncrt.ForbidSync(func() { history = descend(tensor.Randn(1000), 200) }) // panics where something else waits
	fmt.Printf("from %.3f to %.3g in %d steps\n", history[0], history[len(history)-1], len(history))
}
