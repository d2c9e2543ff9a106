package loopexit

import (
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// write ends with a text: letters come from numbers in slices, and texts from letters.
func write(letters *data.Alphabet, next *tensor.Tensor, end string) string {
	written := ""
	for !strings.HasSuffix(written, end) {
		next = next.MulScalar(0.5)
		letter := letters.Decode([]int64{next.ItemInt()}) // want `value decides in loop: next.ItemInt\(\)`
		fmt.Print(letter)
		written += letter
	}
	return written
}
