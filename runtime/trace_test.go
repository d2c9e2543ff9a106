package asyncrt_test

import (
	"bytes"
	"fmt"
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func TestTrace(t *testing.T) {
	var b bytes.Buffer
	stop, err := asyncrt.StartTrace(&b)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Ones(300, 300)
	y := x.Mul(x).AddScalar(2)
	fmt.Println(y.Sum().Item())
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	fmt.Println(b.String())
}
