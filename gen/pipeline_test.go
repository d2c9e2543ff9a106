package gen_test

import (
	"bytes"
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/rewrite"
	"github.com/asyncgen/asyncgen/internal/turns"
)

var (
	// kernelLine is a directive that asks for a rewritten function, offWord what it switches off.
	kernelLine = regexp.MustCompile(`(?m)^//asyncgen:kernel.*$`)
	offWord    = regexp.MustCompile(` off=\S+`)
)

// TestPipeline: without its step no rewrite is made, and off= with its name does the same, and nothing to functions
// in which it is not made.
func TestPipeline(t *testing.T) {
	gen.WithoutExecution(t)
	goldens := gentest.Read(t, "")
	slices.SortFunc(goldens, func(a, b *gentest.Golden) int { return cmp.Compare(len(a.Section("in.go")), len(b.Section("in.go"))) })
	all := rewrite.Pipeline
	defer func() { rewrite.Pipeline = all }()
	dir := gentest.NewModule(t)
	for _, step := range all {
		at := slices.IndexFunc(goldens, func(g *gentest.Golden) bool {
			return bytes.Contains(g.Section("remarks"), []byte(" applied "+step.Name+": "))
		})
		if at < 0 {
			t.Fatalf("no golden file has %s", step.Name)
		}
		source := offWord.ReplaceAll(goldens[at].Section("in.go"), nil)
		gentest.Write(t, filepath.Join(dir, "on", step.Name, "in.go"), source)
		gentest.Write(t, filepath.Join(dir, "off", step.Name, "in.go"), kernelLine.ReplaceAll(source, []byte("$0 off="+step.Name)))
	}
	generate := func(packages string) *gen.Result {
		r, err := gen.Generate(t.Context(), gen.Config{Dir: dir, Patterns: []string{packages}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	on, off := generate("./on/..."), generate("./off/...")
	for i, step := range all {
		if !turns.Has(t, step.Name) {
			continue
		}
		rewrite.Pipeline = slices.Delete(slices.Clone(all), i, i+1)
		without := generatedIn(generate("./on/"+step.Name), step.Name)
		rewrite.Pipeline = all
		with, switchedOff := generatedIn(on, step.Name), generatedIn(off, step.Name)
		if with.text == without.text {
			t.Errorf("%s: the same without the step", step.Name)
		}
		if switchedOff.text != without.text {
			t.Errorf("off=%s: it is\n%s\nwithout the step\n%s", step.Name, switchedOff.text, without.text)
		}
		for function, remarks := range switchedOff.applied {
			if slices.Contains(remarks, step.Name) {
				t.Errorf("off=%s: made in %s: %q", step.Name, function, remarks)
			}
		}
		for function, remarks := range with.applied {
			if !slices.Contains(remarks, step.Name) && !slices.Equal(switchedOff.applied[function], remarks) {
				t.Errorf("off=%s: made in %s is %q, without off= %q", step.Name, function, switchedOff.applied[function], remarks)
			}
		}
	}
}

// An output is what is generated in a folder, and the rewrites that are made there, by function.
type output struct {
	text    string
	applied map[string][]string
}

func generatedIn(r *gen.Result, folder string) output {
	o := output{applied: make(map[string][]string)}
	for _, f := range r.Files {
		if filepath.Base(filepath.Dir(f.Path)) == folder && filepath.Base(f.Path) == "in_async.go" {
			o.text = string(f.Text)
		}
	}
	for _, m := range r.Remarks {
		if filepath.Base(filepath.Dir(m.Pos.Filename)) == folder && m.Verdict == gen.Applied {
			o.applied[m.Function] = append(o.applied[m.Function], m.Rule)
		}
	}
	return o
}
