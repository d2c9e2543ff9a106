//go:build !windows && !((linux || darwin) && (amd64 || arm64) && !android && !ios && !faketime)

package dl

import (
	"errors"
	"runtime"
)

func open(string) (uintptr, error) {
	return 0, errors.New("libraries can't be opened on " + runtime.GOOS + "/" + runtime.GOARCH)
}

func symbol(uintptr, string) (uintptr, error) { panic("dl: there is no library") }
