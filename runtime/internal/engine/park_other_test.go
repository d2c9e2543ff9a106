//go:build !linux || (!amd64 && !arm64)

package engine

var systemWakers []waker
