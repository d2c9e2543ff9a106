//go:build !noasm && !race

package vec

const machine = NEON
