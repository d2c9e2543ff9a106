// Command devices computes the same sum on two devices.
package main

import (
	"fmt"
	"log"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	sim, err := device.Open("sim:0")
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.On(device.CPU()).Linspace(0, 1, 1000)
	there := x.To(sim) // a copy, which is enqueued like all work
	a, b := x.Square().Sum(), there.Square().Sum()
	fmt.Println(a.Device(), b.Device(), a.Item() == b.Item())

	func() {
		defer func() { fmt.Println(recover()) }()
		x.Add(there) // operands of one operation are on one device
	}()

	for _, m := range asyncrt.Stats().Memory {
		fmt.Println(m.Device, "has results:", m.Live > 0, "and a limit:", m.Limit > 0)
	}
}
