package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/device/report"
)

// Rank sets the Measured field of each finding by the report of a run: the waits at the finding's own lines, and at the
// read to which its message leads through other functions. It sorts the findings by the time that the run was blocked
// there. Findings without such a time come last, by position. Rank returns the sum of all waits that belong to no
// finding.
//
// Cfg is the one with which [Vet] found them. A program built with -trimpath names its files by module path: Rank asks
// the go command, run as cfg says, where these modules are.
func Rank(ctx context.Context, cfg Config, rep *report.Report, findings []Finding) (rest report.Counts, err error) {
	modules, err := modulesOf(ctx, cfg, rep)
	if err != nil {
		return rest, err
	}
	for i := range findings {
		findings[i].Measured = nil
	}
	at := ByLine(findings)
	for _, rec := range rep.Records {
		best := at(modules.absolute(rec.File), rec.Line)
		if best < 0 {
			rest.Add(rec.Counts)
			continue
		}
		if findings[best].Measured == nil {
			findings[best].Measured = new(report.Counts)
		}
		findings[best].Measured.Add(rec.Counts)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(b.blocked(), a.blocked()) })
	return rest, nil
}

// ByLine returns a function that returns which of the findings a wait on a line belongs to, or -1. The file is an
// absolute path. It is one finding, the most exact: one on the line comes before one in a caller that leads there.
func ByLine(findings []Finding) func(file string, line int) int {
	places := make([][]place, len(findings))
	for i, f := range findings {
		places[i] = placesOf(f)
	}
	return func(file string, line int) int {
		best := -1
		for i, list := range places {
			if slices.ContainsFunc(list, func(p place) bool { return p.covers(file, line) }) && (best < 0 || len(places[i]) < len(places[best])) {
				best = i
			}
		}
		return best
	}
}

func (f Finding) blocked() int64 {
	if f.Measured == nil {
		return -1
	}
	return f.Measured.BlockedNS()
}

// A place is a range of lines of a file.
type place struct {
	file     string // absolute, or the last element only
	from, to int
}

func (p place) covers(file string, line int) bool {
	return (p.file == file || p.file == filepath.Base(file)) && p.from <= line && line <= p.to
}

var chainLink = regexp.MustCompile(` at ([^\s:()]+\.go):(\d+)`)

// placesOf lists the lines of a finding and those that its message leads to,
// which have the last element of the file's path only.
func placesOf(f Finding) []place {
	file, from, _ := SplitPosn(f.Posn)
	_, to, _ := SplitPosn(f.End)
	list := []place{{file, from, max(from, to)}}
	for _, m := range chainLink.FindAllStringSubmatch(f.Message, -1) {
		line, _ := strconv.Atoi(m[2])
		list = append(list, place{m[1], line, line})
	}
	return list
}

// moduleDirs are the folders of modules, by path.
type moduleDirs map[string]string

// modulesOf asks the go command for the folders of all modules, if the report
// calls files by the path of their module.
func modulesOf(ctx context.Context, cfg Config, rep *report.Report) (moduleDirs, error) {
	if !slices.ContainsFunc(rep.Records, func(r report.Record) bool { return !filepath.IsAbs(r.File) }) {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-m", "-json=Path,Dir", "all"}, cfg.BuildFlags...)...)
	cmd.Dir = cfg.Dir
	cmd.Stderr = cfg.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("vet: find modules: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("vet: find modules: %w", err)
	}
	dirs := make(moduleDirs)
	var decodeErr error
	for dec := json.NewDecoder(out); ; {
		var m struct{ Path, Dir string }
		if decodeErr = dec.Decode(&m); decodeErr != nil {
			break
		}
		dirs[m.Path] = m.Dir
	}
	if decodeErr == io.EOF {
		decodeErr = nil
	}
	if err := errors.Join(decodeErr, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("vet: find modules: %w", err)
	}
	return dirs, nil
}

// absolute is the path of a file that may begin with that of its module,
// perhaps with a version.
func (m moduleDirs) absolute(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	elements := strings.Split(file, "/")
	for i := len(elements) - 1; i > 0; i-- {
		path, _, _ := strings.Cut(strings.Join(elements[:i], "/"), "@")
		if dir := m[path]; dir != "" {
			return filepath.Join(dir, filepath.FromSlash(strings.Join(elements[i:], "/")))
		}
	}
	return file
}
