package data

import (
	"io"
	"math"

	"github.com/asyncgen/asyncgen/device"
)

// Resized is what tests call of resize.go.
var Resized = resized

// ReadIDXLimited is ReadIDX with another number of bytes that any compressed file may become.
func ReadIDXLimited[T device.Element](r io.Reader, limit int64) (Array[T], error) {
	return readIDX[T](r, math.MaxInt64, limit)
}
