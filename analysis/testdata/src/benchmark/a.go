// Package benchmark has only tests.
package benchmark
