//go:build !amd64 || noasm || race

package vec

const machine = Go
