package goroutineread

import (
	"log"
	"sync"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func tell(i int, t *tensor.Tensor) { log.Println(i, t) }

func prints(data []Batch) {
	var wg sync.WaitGroup
	for i, b := range data {
		loss := batch.Loss(b.X, b)
		go log.Println(i, loss)                                  // want `it waits in log.Println`
		go func() { log.Printf("%d: %g", i, loss.Item()) }()     // want `it waits in loss.Item`
		go tell(i, loss)                                         // want `it waits in tell`
		wg.Go(func() { log.Println("loss", loss.MulScalar(2)) }) // want `it waits in log.Println`
	}
	wg.Wait()
}
