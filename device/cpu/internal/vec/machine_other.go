//go:build (!amd64 && !arm64) || noasm || race

package vec

const machine = Go
