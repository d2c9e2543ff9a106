package analysis_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	speed       = flag.String("speed", "", "measure the analysis of these module@version, as TestSpeed says; all stands for the list there")
	speedRounds = flag.Int("speed-rounds", 5, "how often TestSpeed measures each")
)

// limits are the modules that TestSpeed measures: how much of the CPU time of
// go vet's own suite the analysis may take there.
var limits = []struct {
	module string
	most   float64
}{
	{"gonum.org/v1/gonum@v0.17.0", 0.4},
	{"k8s.io/client-go@v0.37.1", 0.4},
	{"github.com/gomlx/gomlx@v0.26.0", 0.5},
}

// newestMost is the same for the command built with the newest x/tools, which
// has to read the types of everything from the files that it writes itself.
const newestMost = 1.1

// TestSpeed measures the CPU time, of the system too, that the analysis of large
// modules takes, against that of go vet's own suite. All that is imported has been
// compiled, no package has been analysed, and each goes first in turn. It prints a
// table of medians and fails if a ratio of them is above its limit. With
// -newest-tools it measures the command built with that version, too:
//
//	go test ./analysis -run TestSpeed -v -timeout 1h -speed all -newest-tools latest
func TestSpeed(t *testing.T) {
	list := strings.Fields(*speed)
	switch *speed {
	case "":
		t.Skip("needs other people's modules and a machine with nothing else to do: -speed all")
	case "all":
		list = nil
		for _, l := range limits {
			list = append(list, l.module)
		}
	}
	tools := []*vetTool{{name: "go vet"}, {name: "asyncgen", path: buildCommand(t, "")}}
	if *newestTools != "" {
		tools = append(tools, &vetTool{name: "asyncgen, x/tools " + *newestTools, path: buildCommand(t, *newestTools)})
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-34s %-30s %8s %6s %17s\n", "", "", "CPU s", "ratio", "from round")
	for _, name := range list {
		t.Run(name, func(t *testing.T) {
			dir := moduleSource(t, name)
			compileAll(t, dir)
			for _, tool := range tools {
				tool.seconds = nil
			}
			for round := range *speedRounds {
				for i := range tools {
					tools[(round+i)%len(tools)].measure(t, dir)
				}
			}
			for i, tool := range tools {
				var ratios []float64
				for round, s := range tool.seconds {
					ratios = append(ratios, s/tools[0].seconds[round])
				}
				ratio := median(ratios)
				fmt.Fprintf(&table, "%-34s %-30s %8.1f %5.2fx %8.2f to %.2f\n", name, tool.name, median(tool.seconds), ratio, slices.Min(ratios), slices.Max(ratios))
				for _, l := range limits {
					most := l.most
					if i == 2 {
						most = newestMost
					}
					if l.module == name && i > 0 && ratio > most {
						t.Errorf("%s takes %.2f times the CPU time of go vet, want at most %.2f", tool.name, ratio, most)
					}
				}
			}
		})
	}
	t.Logf("\n%s", &table)
}

// A vetTool is what go vet runs, its own if there is no path.
type vetTool struct {
	name, path string
	seconds    []float64 // of CPU time, by round
}

// measure runs the tool on all packages in dir. The go command keeps what came of
// a package under the tool and its flags, so that one of them has to be new.
func (tool *vetTool) measure(t *testing.T, dir string) {
	t.Helper()
	var args []string
	if tool.path == "" {
		// Another name for a function like fmt.Printf, which nobody has.
		args = []string{"vet", "-json", fmt.Sprintf("-printf.funcs=nobody.F%d", time.Now().UnixNano()), "./..."}
	} else {
		args = []string{"vet", "-json", "-vettool=" + salted(t, tool.path), "./..."}
	}
	cmd := goVet(dir, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	s := cmd.ProcessState // of the go command and all that it waited for
	tool.seconds = append(tool.seconds, (s.UserTime() + s.SystemTime()).Seconds())
}

// compileAll compiles all that the packages in dir and their tests import.
func compileAll(t *testing.T, dir string) {
	t.Helper()
	cmd := goVet(dir, "vet", "-json", "./...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

func goVet(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	return cmd
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
