package extrawait

import (
	"log"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type job struct {
	x     *tensor.Tensor
	reply chan<- *tensor.Tensor
	told  chan<- answer
	done  chan<- bool
}

type answer struct {
	y   *tensor.Tensor
	err error
}

// Who gets a tensor can wait for it.
func replies(jobs <-chan job, w *tensor.Tensor) {
	for j := range jobs {
		y := j.x.MatMul(w)
		if err := y.Wait(); err != nil { // want `wait in loop: y.Wait\(\) waits for the device in each iteration`
			log.Print(err)
		}
		j.reply <- y
	}
	for j := range jobs {
		y := j.x.MatMul(w)
		y.Wait() // want `wait in loop: y.Wait\(\) waits for the device in each iteration`
		j.reply <- y
	}
}

// Who gets an error, a sign or numbers can't.
func answers(jobs <-chan job, numbers chan<- []float32, w *tensor.Tensor) {
	for j := range jobs {
		y := j.x.MatMul(w)
		j.told <- answer{y, y.Wait()}
	}
	for j := range jobs {
		y := j.x.MatMul(w)
		if y.Wait() == nil {
			j.done <- true
		}
	}
	for j := range jobs {
		y := j.x.MatMul(w)
		if y.Wait() == nil {
			numbers <- y.Float32s()
		}
	}
}
