package analysis

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Baseline is a list of findings that are known and not to be reported again.
// It names them by rule, function and text, not by line, so that it holds when
// code moves; when the text changes, but for comments, the finding is a new one.
//
// In its file the folders of packages are relative to that of the file.
type Baseline struct {
	path    string
	entries map[findingKey]int // how many
}

// baselineFile is the form of a baseline on disk.
type baselineFile struct {
	Version  int             `json:"version"`
	Findings []baselineEntry `json:"findings"`
}

type baselineEntry struct {
	findingKey
	Count int `json:"count"`
}

const baselineVersion = 1

// NewBaseline is the baseline of findings, to be kept in the file at path.
func NewBaseline(path string, findings []Finding) (*Baseline, error) {
	b := &Baseline{path: path, entries: make(map[findingKey]int)}
	root, err := b.root()
	if err != nil {
		return nil, err
	}
	sources := make(sources)
	for _, f := range findings {
		k, err := sources.key(root, f)
		if err != nil {
			return nil, fmt.Errorf("vet: baseline: %w", err)
		}
		b.entries[k]++
	}
	return b, nil
}

// Len is how many findings b lists.
func (b *Baseline) Len() (n int) {
	for _, count := range b.entries {
		n += count
	}
	return n
}

// KeepOthers adds to b what old, another state of the same file, lists for packages in other folders than
// these, as long as the packages are there, and, if rules are given, for other rules than these.
func (b *Baseline) KeepOthers(old *Baseline, folders []string, rules []string) error {
	root, err := b.root()
	if err != nil {
		return err
	}
	asked := make(map[string]bool)
	for _, dir := range folders {
		if dir, err := realPath(dir); err == nil {
			asked[dir] = true
		}
	}
	for k, n := range old.entries {
		dir := filepath.Join(root, filepath.FromSlash(k.Package))
		otherRule := len(rules) > 0 && !slices.Contains(rules, k.Rule)
		if info, err := os.Stat(dir); err == nil && info.IsDir() && (otherRule || !asked[dir]) {
			b.entries[k] += n
		}
	}
	return nil
}

// ReadBaseline reads the baseline in a file.
func ReadBaseline(path string) (*Baseline, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("vet: there is no baseline %s: \"asyncgen vet -write-baseline %s\" makes one", path, path)
		}
		return nil, fmt.Errorf("vet: baseline: %w", err)
	}
	var file baselineFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("vet: baseline %s: %w", path, err)
	}
	if file.Version != baselineVersion {
		return nil, fmt.Errorf("vet: baseline %s: version %d, want %d", path, file.Version, baselineVersion)
	}
	b := &Baseline{path: path, entries: make(map[findingKey]int)}
	for _, e := range file.Findings {
		if e.Count < 1 {
			return nil, fmt.Errorf("vet: baseline %s: count of %s in %s is %d", path, e.Rule, e.Package, e.Count)
		}
		e.Text = withoutComments(e.Text)
		b.entries[e.findingKey] += e.Count
	}
	return b, nil
}

// Write writes the file that b was made for, by renaming another, so that it is
// there as a whole or not at all.
func (b *Baseline) Write() (err error) {
	file := baselineFile{Version: baselineVersion, Findings: []baselineEntry{}}
	for k, n := range b.entries {
		file.Findings = append(file.Findings, baselineEntry{k, n})
	}
	slices.SortFunc(file.Findings, func(x, y baselineEntry) int {
		return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(x.Func, y.Func), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Text, y.Text))
	})
	data, err := json.MarshalIndent(file, "", "\t")
	if err != nil {
		return fmt.Errorf("vet: baseline: %w", err)
	}
	if old, err := os.ReadFile(b.path); err == nil && len(old) > 0 {
		if _, err := ReadBaseline(b.path); err != nil {
			return fmt.Errorf("%w: it has something else in it than a baseline, and stays as it is", err)
		}
	}
	temp, err := os.CreateTemp(filepath.Dir(b.path), ".baseline-*")
	if err != nil {
		if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
			err = cause.Err // the name is not one that the user has given
		}
		return fmt.Errorf("vet: baseline: write %s: %w", b.path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(temp.Name())
			err = fmt.Errorf("vet: baseline: %w", err)
		}
	}()
	_, werr := temp.Write(append(data, '\n'))
	if err := errors.Join(werr, temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), b.path)
}

// New returns the findings that b does not list. Of more findings with the same
// text in a function than b lists, the last ones are new.
func (b *Baseline) New(findings []Finding) ([]Finding, error) {
	root, err := b.root()
	if err != nil {
		return nil, err
	}
	sources := make(sources)
	seen := make(map[findingKey]int)
	var list []Finding
	for _, f := range findings {
		k, err := sources.key(root, f)
		if err != nil {
			return nil, fmt.Errorf("vet: baseline: %w", err)
		}
		if seen[k]++; seen[k] > b.entries[k] {
			list = append(list, f)
		}
	}
	return list, nil
}

// root is the folder of b's file.
func (b *Baseline) root() (string, error) {
	dir, err := realPath(filepath.Dir(b.path))
	if err != nil {
		return "", fmt.Errorf("vet: baseline: %w", err)
	}
	return dir, nil
}
