//go:build !linux && !darwin

package files

import (
	"errors"
	"os"
)

// mapped returns an error: files are read in the usual way.
func mapped(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }
