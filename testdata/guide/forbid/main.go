// Command forbid makes a call that waits fail.
package main

import (
	"fmt"
	"log"
	"path/filepath"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	sim, err := device.Open("sim:0")
	if err != nil {
		log.Fatal(err)
	}
	sum := tensor.On(sim).Ones(1000).Sum()
	asyncrt.ForbidSync(func() {
		defer func() {
			err := recover().(*asyncrt.SyncError)
			fmt.Println(filepath.Base(err.File), err.Line, err.Call)
		}()
		fmt.Println(sum.Item())
	})
	fmt.Println(sum.Item()) // the tensor is as good as before
}
