package analysis_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// inhouse is a module with a tensor library of its own, and its profile.
var inhouse = map[string]string{
	"acme/acme.go": `package acme

type T struct{ v float64 }

func (t *T) Exp() *T        { return t }
func (t *T) Value() float64 { return t.v }
func (t *T) String() string { return "" }

func Logf(format string, args ...any) {}
`,
	"use/use.go": `package use

import "example.com/user/acme"

func sum(x *acme.T) (s float64) {
	for range 100 {
		x = x.Exp()
		s += x.Value()
	}
	return s
}

func logged(x *acme.T) {
	for i := range 100 {
		x = x.Exp()
		acme.Logf("%d %v %p", i, x, x)
		acme.Logf("%d %p", i, x)
	}
}
`,
	"lint/acme.json": acme,
}

const acme = `{
	"name": "acme",
	"async": true,
	"core": ["example.com/user/acme"],
	"tensors": ["example.com/user/acme.T"],
	"read": ["(*example.com/user/acme.T).Value"],
	"print": ["(*example.com/user/acme.T).String"],
	"printers": ["example.com/user/acme.Logf"],
	"op": ["*"]
}
`

// A user's library is known by a flag and by the module's file, each change of
// which counts at once, although go vet keeps what it has found.
func TestUserProfiles(t *testing.T) {
	turns.Take(t)
	dir := module(t, inhouse)
	profile := filepath.Join(dir, "lint", "acme.json")
	find := func(files ...string) string {
		t.Helper()
		findings, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./..."}, Profiles: files, Stderr: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, f := range findings {
			rules = append(rules, f.Rule)
		}
		return strings.Join(rules, " ")
	}
	plain := func() string { return goCommand(t, dir, -1, "vet", "-vettool="+os.Args[0], "./...") }
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"no profile", func() {}, ""},
		{"a file that names it", func() { write(t, dir, tensorapi.ConfigName, `{"effects": {}, "profiles": ["lint/acme.json"]}`) }, "AT001 AT004"},
		{"another profile", func() { write(t, dir, "lint/acme.json", strings.Replace(acme, ".Value", ".Other", 1)) }, "AT004"},
		{"the first again", func() { write(t, dir, "lint/acme.json", acme) }, "AT001 AT004"},
		{"a synchronous library", func() { write(t, dir, "lint/acme.json", strings.Replace(acme, "true", "false", 1)) }, ""},
		{"the profile in the file", func() { write(t, dir, tensorapi.ConfigName, `{"profiles": [`+acme+`]}`) }, "AT001 AT004"},
		{"a file without profiles", func() { write(t, dir, tensorapi.ConfigName, `{"effects": {}}`) }, ""},
	}
	for _, s := range steps {
		s.do()
		if got := find(); got != s.want {
			t.Errorf("%s: findings are %q, want %q", s.name, got, s.want)
		}
		got := plain()
		for _, rule := range []string{"AT001", "AT004"} {
			if strings.Contains(got, "["+rule+"]") != strings.Contains(s.want, rule) {
				t.Errorf("%s: go vet says\n%s", s.name, got)
			}
		}
	}
	write(t, dir, "lint/acme.json", acme)
	if got := find("lint/acme.json"); got != "AT001 AT004" {
		t.Errorf("by a flag the findings are %q", got)
	}
	digest, err := tensorapi.Digest(profile)
	if err != nil {
		t.Fatal(err)
	}
	out := goCommand(t, dir, 1, "vet", "-vettool="+os.Args[0], "-profile="+profile, "-profile-digest="+digest, "./use")
	if !strings.Contains(out, "[AT001]") {
		t.Errorf("go vet with a profile says\n%s", out)
	}
	for want, args := range map[string][]string{
		"-profile without -profile-digest=" + digest: {"-profile=" + profile},
		"have changed meanwhile":                     {"-profile=" + profile, "-profile-digest=0"},
		"has to be absolute":                         {"-profile=lint/acme.json", "-profile-digest=" + digest},
	} {
		out := goCommand(t, dir, 1, append(append([]string{"vet", "-vettool=" + os.Args[0]}, args...), "./use")...)
		if !strings.Contains(out, want) {
			t.Errorf("%q: go vet says\n%s\nwant %s", args, out, want)
		}
	}
}

// What is wrong with a profile is said with its place, by whichever command.
func TestWrongProfile(t *testing.T) {
	dir := module(t, inhouse)
	config := filepath.Join(dir, tensorapi.ConfigName)
	write(t, dir, tensorapi.ConfigName, "{\n\t\"profiles\": [{\"name\": \"acme\", \"async\": true, \"tensors\": [],\n\t\t\"reads\": []}]\n}\n")
	want := tensorapi.ConfigName + `:3:3: there is no setting "reads"; did you mean "read"?`
	var stderr bytes.Buffer
	_, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./..."}, Stderr: &stderr})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if out := goCommand(t, dir, 1, "vet", "-vettool="+os.Args[0], "./..."); !strings.Contains(out, want) {
		t.Errorf("go vet says\n%s\nwant %s", out, want)
	}
	os.Remove(config)
	for file, want := range map[string]string{
		"missing.json":   "missing.json: no such file",
		"lint":           "lint: is a directory",
		"acme/acme.go":   "acme.go:1:1: ",
		"a,b/acme.json":  "can't have a comma",
		"lint/acme.json": "",
	} {
		_, err := analysis.Vet(t.Context(), analysis.Config{Dir: dir, Patterns: []string{"./use"}, Profiles: []string{file}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", file, err, want)
		}
	}
}
