package analysis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/device/report"
)

// A Config says what [Vet] analyses.
type Config struct {
	// Dir is the folder to work in; empty means the current one.
	Dir string
	// Patterns name the packages; none means the one in Dir.
	Patterns []string
	// Rules are the ids of the rules to apply; none means all.
	Rules []string
	// Info asks for findings of severity info, too.
	Info bool
	// Tests asks for findings in test files, and in functions that take a testing.TB
	// or its like, too.
	Tests bool
	// Profiles are files that describe tensor libraries, see
	// [github.com/asyncgen/asyncgen/analysis/tensorapi.Load]. The file
	// asyncgen.json in Dir, or the nearest folder above that has one, is another.
	Profiles []string
	// BuildFlags are passed to the go command: -tags=x.
	BuildFlags []string
	// Stderr receives what the go command has to say; nil discards it.
	Stderr io.Writer
}

// A Finding is one diagnostic of a rule.
type Finding struct {
	Rule     string         `json:"rule"`
	Severity lint.Severity  `json:"severity"`
	Posn     string         `json:"posn"` // "file:line:column", the file as an absolute path
	End      string         `json:"end"`
	Message  string         `json:"message"`
	Related  []Related      `json:"related,omitempty"`
	Fixes    []Fix          `json:"fixes,omitempty"`
	Measured *report.Counts `json:"measured,omitempty"` // what Rank has found out, nil for nothing

	unit string // the package, as the go command calls it
}

// Related is a place that a finding refers to.
type Related struct {
	Posn    string `json:"posn"`
	End     string `json:"end"`
	Message string `json:"message"`
}

// A Fix is one way to resolve a finding.
type Fix struct {
	Message string `json:"message"`
	Edits   []Edit `json:"edits"`
}

// An Edit replaces the bytes from Start to End of a file.
type Edit struct {
	Filename string `json:"filename"`
	Start    int    `json:"start"`
	End      int    `json:"end"`
	New      string `json:"new"`
}

// Vet analyses packages and returns the findings by position. It runs go vet
// with this program as its tool, so [IsUnit] and [Unit] must be what main asks
// first, and what did not change since the last time is not analysed again.
//
// Packages that don't compile are an error, whether they can reach a tensor or not;
// what is wrong with them has been written to Stderr, and the findings are those in
// the other packages. Packages that don't compile because a library that is written
// in C is not there are skipped instead, and Stderr says so.
func Vet(ctx context.Context, cfg Config) ([]Finding, error) {
	out, err := vet(ctx, cfg, "-json")
	findings, cause := parseFindings(out)
	if len(findings) > 0 && cause == nil {
		findings, cause = named(ctx, cfg, findings)
	}
	if err == nil {
		err = cause
	}
	return findings, err
}

// named returns the findings in packages that the patterns name. Of others, which these import, go vet
// prints what an earlier run has found, if it is there.
func named(ctx context.Context, cfg Config, findings []Finding) ([]Finding, error) {
	packages, err := Folders(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		path, _, _ := strings.Cut(f.unit, " ") // for the tests of which package
		_, ok := packages[path]
		if !ok {
			_, ok = packages[strings.TrimSuffix(path, "_test")]
		}
		return !ok
	}), nil
}

// Folders returns the folders of the packages that the patterns name, by their import paths.
func Folders(ctx context.Context, cfg Config) (map[string]string, error) {
	lines, err := goList(ctx, cfg, "-f", "{{.ImportPath}}\t{{.Dir}}")
	folders := make(map[string]string)
	for _, line := range lines {
		path, dir, _ := strings.Cut(line, "\t")
		folders[path] = dir
	}
	return folders, err
}

// goList runs go list for the patterns and returns the lines that it prints.
func goList(ctx context.Context, cfg Config, flags ...string) ([]string, error) {
	args := append(append([]string{"list", "-e"}, flags...), cfg.BuildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(append(args, "--"), cfg.Patterns...)...)
	cmd.Dir = cfg.Dir
	out, err := cmd.Output()
	if interrupted(ctx, err, "") {
		return nil, errInterrupted
	}
	if err != nil {
		return nil, fmt.Errorf("vet: list packages: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// KnowsLibrary reports whether a package that the patterns name, or one of its tests, can reach a tensor
// of a library that is known. If none does, there is nothing to find.
func KnowsLibrary(ctx context.Context, cfg Config) (bool, error) {
	files := slices.Clone(cfg.Profiles)
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return false, fmt.Errorf("vet: %w", err)
	}
	if found := tensorapi.Find(dir); found != "" {
		files = append(files, found)
	}
	var own []*tensorapi.Profile
	for _, file := range files {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		profiles, err := tensorapi.Load(file, nil)
		if err != nil {
			return false, err
		}
		own = append(own, profiles...)
	}
	known := tensorapi.NewSet(own...)
	reached, err := goList(ctx, cfg, "-deps", "-test", "-f", "{{.ImportPath}}")
	return slices.ContainsFunc(reached, func(path string) bool { return len(known.About(path)) > 0 }), err
}

// ApplyFixes applies the fixes of the rules in FixSuite to packages of the main
// module; of cfg.Rules, one at least has to be among these. With diff it writes what
// would change to stdout instead, as a patch for the folder of cfg, and reports whether
// there is anything.
func ApplyFixes(ctx context.Context, cfg Config, diff bool, stdout io.Writer) (changes bool, err error) {
	if len(cfg.Rules) > 0 {
		fixed := slices.DeleteFunc(slices.Clone(cfg.Rules), func(id string) bool { return !lint.RuleOf(id).Fixes })
		if len(fixed) == 0 {
			return false, fmt.Errorf("vet: -fix: %s: there are no fixes; rules with fixes are %s", strings.Join(cfg.Rules, ", "), strings.Join(fixable(), ", "))
		}
		cfg.Rules = fixed // the tool that fixes does not know the others
	}
	if !diff {
		_, err := vet(ctx, cfg, "-fix")
		return false, err
	}
	out, err := vet(ctx, cfg, "-fix", "-diff")
	if out.Len() == 0 || errors.Is(err, errInterrupted) {
		return false, err
	}
	// go vet -diff fails when there is a diff
	packages, err := Folders(ctx, cfg)
	if err != nil {
		return false, err
	}
	dir, err := realPath(cfg.Dir)
	if err != nil {
		return false, fmt.Errorf("vet: %w", err)
	}
	text := patch(out.String(), dir, slices.Collect(maps.Values(packages)))
	_, err = io.WriteString(stdout, text)
	return text != "", err
}

// fixable lists the rules with fixes.
func fixable() (ids []string) {
	for _, a := range FixSuite {
		ids = append(ids, a.Name)
	}
	return ids
}

// errInterrupted is context.Canceled, in the words of a command.
var errInterrupted error = interruption{}

type interruption struct{}

func (interruption) Error() string        { return "vet: interrupted" }
func (interruption) Is(target error) bool { return target == context.Canceled }

// interrupted reports whether the go command has failed with err and with these messages because of an interrupt.
// A terminal sends it to all programs, and so it may be over before ctx is.
func interrupted(ctx context.Context, err error, stderr string) bool {
	const signal = "signal: interrupt"
	exit := (*exec.ExitError)(nil)
	return ctx.Err() != nil || errors.As(err, &exit) && (exit.String() == signal || strings.Contains(stderr, signal))
}

// vet runs go vet and returns what it prints. Packages that can't be analysed for
// lack of C are skipped.
func vet(ctx context.Context, cfg Config, flags ...string) (*bytes.Buffer, error) {
	stdout, stderr, err := goVet(ctx, cfg, flags...)
	if interrupted(ctx, err, stderr) {
		return stdout, errInterrupted
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && announcements.ReplaceAllString(stderr, "") != "" {
		rest, reasons, cause := withoutC(ctx, cfg)
		if cause == nil {
			stdout, stderr, err = new(bytes.Buffer), "", nil
			if len(rest) > 0 {
				cfg.Patterns = rest
				stdout, stderr, err = goVet(ctx, cfg, flags...)
			}
			for _, why := range reasons {
				stderr += "asyncgen: vet: skipped " + why + "\n"
			}
		}
	}
	if cfg.Stderr != nil {
		if err == nil {
			stderr = announcements.ReplaceAllString(stderr, "")
		}
		io.WriteString(cfg.Stderr, stderr)
	}
	if interrupted(ctx, err, stderr) {
		return stdout, errInterrupted
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.New("vet: the go command could not analyse all packages")
		if slices.Contains(flags, "-fix") {
			err = errors.New("vet: the go command could not apply all fixes")
		}
	}
	return stdout, err
}

// announcements are the lines on stderr by which go vet announces each package
// with findings; with findings as data, they say nothing.
var announcements = regexp.MustCompile(`(?m)^# .*\n`)

// goVet runs go vet with this program as its tool.
func goVet(ctx context.Context, cfg Config, flags ...string) (stdout *bytes.Buffer, stderr string, err error) {
	stdout = new(bytes.Buffer)
	self, err := os.Executable()
	if err != nil {
		return stdout, "", fmt.Errorf("vet: find this program: %w", err)
	}
	profiles, err := profileFlags(cfg)
	if err != nil {
		return stdout, "", err
	}
	args := append([]string{"vet", "-vettool=" + self}, flags...)
	args = append(args, profiles...)
	args = append(args, cfg.BuildFlags...)
	if cfg.Info {
		args = append(args, "-severity=info")
	}
	if cfg.Tests {
		args = append(args, "-tests")
	}
	for _, rule := range cfg.Rules {
		args = append(args, "-"+rule)
	}
	args = append(args, "--")
	cmd := exec.CommandContext(ctx, "go", append(args, cfg.Patterns...)...)
	cmd.Dir = cfg.Dir
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = stdout, &errs
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("vet: run the go command: %w", err)
	}
	return stdout, errs.String(), err
}

// parseFindings reads what go vet -json writes: for each unit an object that
// maps its id and the rule to diagnostics or to an error.
func parseFindings(r io.Reader) ([]Finding, error) {
	var list []Finding
	dec := json.NewDecoder(r)
	for {
		var tree map[string]map[string]json.RawMessage
		err := dec.Decode(&tree)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("vet: read findings: %w", err)
		}
		for unit, rules := range tree {
			for rule, raw := range rules {
				found, err := parseDiagnostics(unit, rule, raw)
				if err != nil {
					return nil, fmt.Errorf("vet: %s: %w", unit, err)
				}
				list = append(list, found...)
			}
		}
	}
	slices.SortFunc(list, compareFindings)
	return slices.CompactFunc(list, func(a, b Finding) bool { return compareFindings(a, b) == 0 }), nil
}

func parseDiagnostics(unit, rule string, raw json.RawMessage) ([]Finding, error) {
	var failure struct {
		Err string `json:"error"`
	}
	if json.Unmarshal(raw, &failure) == nil && failure.Err != "" {
		return nil, errors.New(failure.Err)
	}
	var found []struct {
		Finding
		Category       string
		SuggestedFixes []Fix `json:"suggested_fixes"`
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	var list []Finding
	for _, f := range found {
		f.unit, f.Rule, f.Fixes, f.Severity = unit, rule, f.SuggestedFixes, lint.SeverityOf(f.Category)
		list = append(list, f.Finding)
	}
	return list, nil
}

func compareFindings(a, b Finding) int {
	fileA, lineA, colA := SplitPosn(a.Posn)
	fileB, lineB, colB := SplitPosn(b.Posn)
	return cmp.Or(cmp.Compare(fileA, fileB), cmp.Compare(lineA, lineB), cmp.Compare(colA, colB),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
}

// SplitPosn splits "file:line:column". The file may have colons.
func SplitPosn(posn string) (file string, line, column int) {
	rest, column := cutNumber(posn)
	file, line = cutNumber(rest)
	return file, line, column
}

func cutNumber(s string) (string, int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0
	}
	n, err := strconv.Atoi(s[i+1:])
	if err != nil {
		return s, 0
	}
	return s[:i], n
}
