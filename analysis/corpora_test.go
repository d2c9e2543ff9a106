package analysis_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/analysis"
)

var corpora = flag.String("corpora", "", "analyse these, of std and module@version, as TestCorpora says; all stands for the list there")

// TestCorpora analyses large modules of other people as asyncgen vet does, and
// prints a table. Those without tensors must have no finding of any kind; the
// warnings about one that has some must be those that somebody has looked at, in
// testdata/NAME/VERSION.txt. It downloads and compiles a lot:
//
//	go test ./analysis -run Corpora -v -timeout 1h -corpora all
func TestCorpora(t *testing.T) {
	list := strings.Fields(*corpora)
	switch *corpora {
	case "":
		t.Skip("needs other people's modules: -corpora all")
	case "all":
		list = []string{"std", "gonum.org/v1/gonum@v0.17.0", "golang.org/x/tools@v0.49.0", "k8s.io/client-go@v0.37.1", "github.com/gomlx/gomlx@v0.26.0"}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-34s %9s %9s %8s\n", "", "packages", "findings", "seconds")
	for _, name := range list {
		t.Run(name, func(t *testing.T) {
			cfg := analysis.Config{Dir: t.TempDir(), Patterns: []string{"std"}, Info: true, Tests: true}
			judged := judgements(t, name)
			if name != "std" {
				cfg.Dir = moduleSource(t, name)
				cfg.Patterns = []string{"./..."}
			}
			if judged != nil {
				cfg.Info, cfg.Tests = false, false
			}
			var stderr bytes.Buffer
			cfg.Stderr = &stderr
			start := time.Now()
			findings, err := analysis.Vet(t.Context(), cfg)
			seconds := time.Since(start).Seconds()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			packages := strings.Count(goCommand(t, cfg.Dir, 0, append([]string{"list"}, cfg.Patterns...)...), "\n")
			line := fmt.Sprintf("%-34s %9d %9d %8.1f\n", name, packages, len(findings), seconds)
			t.Log(line) // the rest may take long
			table.WriteString(line)
			for _, f := range findings {
				file, line, column := analysis.SplitPosn(f.Posn)
				rel, err := filepath.Rel(cfg.Dir, file)
				if err != nil {
					t.Fatal(err)
				}
				where := fmt.Sprintf("%s:%d:%d %s", filepath.ToSlash(rel), line, column, f.Rule)
				if !judged[where] {
					t.Errorf("nobody has looked at %s: %s", where, f.Message)
				}
				delete(judged, where)
			}
			for where := range judged {
				t.Errorf("%s is no longer found", where)
			}
		})
	}
	t.Logf("\n%s", &table)
}

// judgements lists the findings in a module that somebody has looked at, each as
// "file:line:column rule"; nil if there must be none.
func judgements(t *testing.T, name string) map[string]bool {
	path, version, _ := strings.Cut(name, "@")
	text, err := os.ReadFile(filepath.Join("testdata", filepath.Base(path), version+".txt"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	judged := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 4 {
			t.Fatalf("%s: want a place, a rule and what is to say about it: %s", name, line)
		}
		judged[words[0]+" "+words[1]] = true
	}
	return judged
}

// moduleSource returns a copy of a module, as the go command downloads it.
func moduleSource(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", name)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GO111MODULE=on", "GOFLAGS=")
	out, err := cmd.Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); err != nil || jsonErr != nil || m.Dir == "" {
		t.Fatalf("download %s: %v, %v: %s", name, err, jsonErr, m.Error)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(m.Dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The list of judgements is short enough to be read, and each line says something.
func TestJudgements(t *testing.T) {
	judged := judgements(t, "github.com/gomlx/gomlx@v0.26.0")
	const most = 40
	if len(judged) == 0 || len(judged) > most {
		t.Errorf("%d findings have been judged, want 1 to %d", len(judged), most)
	}
	var keys []string
	for where := range judged {
		keys = append(keys, where)
	}
	slices.Sort(keys)
	for _, where := range keys {
		if !strings.Contains(where, ".go:") || !strings.Contains(where, " AT") {
			t.Errorf("%q is no finding", where)
		}
	}
}
