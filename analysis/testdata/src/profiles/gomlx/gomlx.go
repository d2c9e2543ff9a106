// Package gomlx uses GoMLX up to version 0.26.
package gomlx

import (
	"fmt"
	"time"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/train"
)

func losses(trainer *train.Trainer, inputs, labels []*tensors.Tensor) (total float64, err error) {
	for step := range 1000 {
		metrics, err := trainer.TrainStep(nil, inputs, labels)
		if err != nil {
			return 0, err
		}
		total += float64(tensors.ToScalar[float32](metrics[0])) // want `blocking read in loop: ToScalar|tensors.ToScalar\[float32\]\(metrics\[0\]\) waits for the device .*AT001`
		fmt.Println(step, metrics[1])                           // want `fmt.Println .*AT004`
		fmt.Println(step, metrics[1].Size())
		if step%100 == 0 {
			fmt.Println(metrics[2].Value())
		}
	}
	return total, nil
}

// A value may also be given to a function.
func handedOn(exec *graph.Exec, x *tensors.Tensor) (sum float32) {
	for range 1000 {
		x = exec.MustExec1(x)
		tensors.MustConstFlatData(x, func(flat []float32) { // want `blocking read in loop: .*MustConstFlatData.*AT001`
			for _, v := range flat {
				sum += v
			}
		})
	}
	return sum
}

func saved(exec *graph.Exec, x *tensors.Tensor) {
	for i := range 1000 {
		x = exec.MustExec1(x)
		x.Save(fmt.Sprint(i)) // want `blocking read in loop: .*Save.*AT001`
	}
}

// What is filled on the host waits for nothing.
func filled(exec *graph.Exec) (results []*tensors.Tensor) {
	for i := range 1000 {
		x := tensors.FromShape(8)
		tensors.MustMutableFlatData(x, func(flat []float32) { flat[0] = float32(i) })
		results = append(results, exec.MustExec(x)...)
	}
	return results
}

// Nodes are no tensors.
func symbolic(x *graph.Node) {
	for range 1000 {
		x = graph.Add(x, x)
		fmt.Println(x)
	}
}

// Operations are finished when they return.
func timed(exec *graph.Exec, x *tensors.Tensor) time.Duration {
	start := time.Now()
	exec.MustExec1(x)
	return time.Since(start)
}

// The loop in run is the one that matters.
func outer(exec *graph.Exec, x *tensors.Tensor) {
	for range 100 {
		x = run(exec, x)
		fmt.Println(x)
	}
}

func run(exec *graph.Exec, x *tensors.Tensor) *tensors.Tensor {
	for range 100 {
		x = exec.MustExec1(x)
	}
	return x
}

func copied(exec *graph.Exec, x *tensors.Tensor) {
	var list []*tensors.Tensor
	for range 1000 {
		x = exec.MustExec1(x)
		local, err := x.LocalClone() // want `blocking read in loop: x.LocalClone\(\) .*AT001`
		if err == nil {
			list = append(list, local)
		}
	}
	_ = list
}

// What is read and dropped, or read over and over, is copied for nothing.
func dropped(exec *graph.Exec, x *tensors.Tensor, n int) (sum float32) {
	_ = exec.MustExec1(x).Value() // want `value of exec.MustExec1\(x\).Value\(\) is not used.*AT030`
	for range 1000 {
		x = exec.MustExec1(x)
		_ = x.Value() // want `AT030`
	}
	y := exec.MustExec1(x)
	for k := range n {
		sum += tensors.MustCopyFlatData[float32](y)[k] // want `reads the same in each iteration; read it once before the loop .*AT006`
	}
	for range n {
		sum += tensors.ToScalar[float32](y)
		tensors.MustConstFlatData(y, func(flat []float32) { sum += flat[0] })
	}
	for k := range n {
		tensors.MustMutableFlatData(y, func(flat []float32) { flat[k]++ })
		sum += tensors.MustCopyFlatData[float32](y)[k]
	}
	for k := range n {
		y.Value()                                      // want `AT030` `AT006`
		sum += tensors.MustCopyFlatData[float32](x)[k] // want `AT006`
	}
	return sum
}
