package blocking_test

import (
	"flag"
	"fmt"
	"go/types"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

var corpus = flag.String("corpus", "encoding/csv text/tabwriter", "packages that TestCorpus analyses")

// TestCorpus analyses code that was not written for it, twice: bytes.Buffer
// and strings.Builder stand for tensors, so that most of the analysis has
// something to do. It must not fail, and must say the same both times. For
// more than a few packages:
//
//	go test ./analysis/blocking -run Corpus -v -corpus std
func TestCorpus(t *testing.T) {
	defer blocking.UseProfiles(buffers())()
	var first []string
	patterns := strings.Fields(*corpus)
	for round := range 2 {
		// Neither the order of packages nor the parallelism may matter.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(round + 1))
		slices.Reverse(patterns)
		found := analyze(t, patterns...)
		t.Logf("round %d: %d findings and facts", round, len(found))
		if round == 0 {
			first = found
		} else if !slices.Equal(found, first) {
			t.Errorf("two runs differ:\n%s\n\n%s", strings.Join(first, "\n"), strings.Join(found, "\n"))
		}
	}
	if len(first) == 0 {
		t.Error("no findings: the corpus does not exercise the analysis")
	}
	if testing.Verbose() {
		for _, f := range first {
			t.Log(f)
		}
	}
}

// analyze returns the findings in packages, and the facts about them and what
// they import, sorted.
func analyze(t *testing.T, patterns ...string) []string {
	t.Helper()
	blocking.Analyzer.Flags.Set("severity", "info")
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(append(slices.Clone(analysis.Suite), blocking.Analyzer), pkgs, &checker.Options{SanityCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for act := range graph.All() {
		if act.Err != nil {
			t.Errorf("%v: %v", act, act.Err)
		}
		if act.Analyzer == blocking.Analyzer {
			for _, f := range act.AllObjectFacts() {
				if f.Object.Pkg() == act.Package.Types {
					found = append(found, fmt.Sprintf("%s: %v", types.ObjectString(f.Object, nil), f.Fact))
				}
			}
		}
		for _, d := range act.Diagnostics {
			found = append(found, fmt.Sprintf("%v: %s", act.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	slices.Sort(found)
	return found
}

// buffers is a profile in which a buffer stands for a tensor.
func buffers() *tensorapi.Profile {
	p := &tensorapi.Profile{
		Packages: []string{"bytes", "strings"},
		Types:    []string{"bytes.Buffer", "strings.Builder"},
		Funcs:    make(map[string]tensorapi.Func),
		Values:   true,
		Async:    tensorapi.Async,
	}
	for _, typ := range p.Types {
		for kind, names := range map[tensorapi.Kind]string{
			tensorapi.Read:   "String Bytes Len",
			tensorapi.Mutate: "Write WriteString WriteByte WriteRune ReadFrom",
			tensorapi.Wait:   "Reset Grow",
		} {
			for _, name := range strings.Fields(names) {
				full := fmt.Sprintf("(*%s).%s", typ, name)
				p.Funcs[full] = tensorapi.Func{Name: full, Kind: kind, Arg: tensorapi.Recv}
			}
		}
	}
	p.Funcs["bytes.NewBuffer"] = tensorapi.Func{Name: "bytes.NewBuffer", Kind: tensorapi.Op, Arg: tensorapi.None}
	p.Funcs["bytes.NewBufferString"] = tensorapi.Func{Name: "bytes.NewBufferString", Kind: tensorapi.Op, Arg: tensorapi.None}
	return p
}
