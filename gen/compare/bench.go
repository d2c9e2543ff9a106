package compare

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultTimes is how often the body of a benchmark runs in each process: as
// often as written and rewritten, so that both do, and print, the same.
const defaultTimes = 20

// A Benchmark is one benchmark of a package and what an operation of it takes, in each of the timed runs.
type Benchmark struct {
	Name      string          `json:"name"`
	Original  []time.Duration `json:"original_ns"`
	Rewritten []time.Duration `json:"rewritten_ns"`
}

// benchArgs are the arguments with which a test binary runs the benchmarks of cfg, and nothing else.
func (cfg Config) benchArgs() []string {
	return append([]string{"-test.run=^$", "-test.bench=" + cfg.Bench, fmt.Sprintf("-test.benchtime=%dx", cfg.Times)}, cfg.Args...)
}

// measured is the part of a line that a benchmark prints which is not the same each time.
var measured = regexp.MustCompile(`\s+\d+\t\s*([0-9.]+) ns/op.*$`)

// benchmarks returns what the benchmarks in the output of a test binary took, by name.
func benchmarks(stdout []byte) map[string]time.Duration {
	took := make(map[string]time.Duration)
	name := ""
	for line := range bytes.Lines(stdout) {
		line = bytes.TrimRight(line, "\r\n")
		if bytes.HasPrefix(line, []byte("Benchmark")) {
			name = strings.Fields(string(line))[0]
		}
		// perhaps on a line of its own, after what the benchmark has printed
		if m := measured.FindSubmatch(line); m != nil {
			if ns, err := strconv.ParseFloat(string(m[1]), 64); err == nil {
				took[name] = time.Duration(ns)
			}
		}
	}
	return took
}

// addBenchmarks records what the benchmarks took in one run of each program.
func (d *Device) addBenchmarks(original, rewritten map[string]time.Duration) {
	for name, took := range original {
		i := slices.IndexFunc(d.Benchmarks, func(b Benchmark) bool { return b.Name == name })
		if i < 0 {
			i = len(d.Benchmarks)
			d.Benchmarks = append(d.Benchmarks, Benchmark{Name: name})
		}
		b := &d.Benchmarks[i]
		b.Original, b.Rewritten = append(b.Original, took), append(b.Rewritten, rewritten[name])
	}
	slices.SortFunc(d.Benchmarks, func(a, b Benchmark) int { return strings.Compare(a.Name, b.Name) })
}

// median is that of times.
func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
