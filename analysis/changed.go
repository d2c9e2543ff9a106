package analysis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Changes are the lines of files in a working tree that are not as they were at
// some commit.
type Changes struct {
	root  string
	lines map[string][]lineRange // by path below root, with slashes
	whole map[string]bool        // files that git does not know yet
	all   bool                   // there is no commit yet
}

type lineRange struct{ from, to int }

// ChangedSince returns the lines that differ, committed or not, from where the
// history of the work in dir left that of ref: a branch, a tag, a commit. Before the first
// commit all lines differ from HEAD.
func ChangedSince(ctx context.Context, dir, ref string) (*Changes, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			why, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
			return "", fmt.Errorf("vet: changes since %s: git %s: %w: %s", ref, args[0], err, why)
		}
		return string(out), nil
	}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if _, err := git("rev-parse", "--verify", "HEAD"); err != nil && ref == "HEAD" {
		return &Changes{all: true}, nil
	}
	base, err := git("merge-base", "--end-of-options", ref, "HEAD")
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, fmt.Errorf("vet: changes since %s: it has no commit in common with HEAD, or the clone is too shallow: git fetch --unshallow", ref)
	}
	if err != nil {
		return nil, err
	}
	diff, err := git("-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false",
		"diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-renames", "--no-relative", "--src-prefix=a/", "--dst-prefix=b/", strings.TrimSpace(base), "--")
	if err != nil {
		return nil, err
	}
	others, err := git("ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/")
	if err != nil {
		return nil, err
	}
	root, err := realPath(filepath.FromSlash(strings.TrimSuffix(top, "\n")))
	if err != nil {
		return nil, fmt.Errorf("vet: changes since %s: %w", ref, err)
	}
	c := &Changes{root: root, lines: make(map[string][]lineRange), whole: make(map[string]bool)}
	for name := range strings.SplitSeq(others, "\x00") {
		c.whole[name] = name != ""
	}
	return c, c.parse(diff)
}

var hunk = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@`)

// parse reads a diff without context. Where lines were only deleted, the lines
// around the gap count as changed.
func (c *Changes) parse(diff string) error {
	file := ""
	inHeader := false
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			file, inHeader = "", true
		case inHeader && strings.HasPrefix(line, "+++ "):
			name := strings.TrimSuffix(line[len("+++ "):], "\t") // git marks the end of a name with spaces
			if unquoted, err := strconv.Unquote(name); err == nil {
				name = unquoted
			}
			file = strings.TrimPrefix(name, "b/")
		case strings.HasPrefix(line, "@@ "):
			inHeader = false
			m := hunk.FindStringSubmatch(line)
			if m == nil {
				return fmt.Errorf("vet: git diff says %q", line)
			}
			from, _ := strconv.Atoi(m[1])
			n := 1
			if m[2] != "" {
				n, _ = strconv.Atoi(m[2])
			}
			r := lineRange{from, from + n - 1}
			if n == 0 {
				r = lineRange{from, from + 1}
			}
			c.lines[file] = append(c.lines[file], r)
		}
	}
	return nil
}

// Touch reports whether the change has a line of the finding, or a line that the finding refers to, such as the head
// of the loop around it.
func (c *Changes) Touch(f Finding) bool {
	if c.all || c.touch(f.Posn, f.End) {
		return true
	}
	for _, r := range f.Related {
		if c.touch(r.Posn, r.Posn) {
			return true
		}
	}
	return false
}

func (c *Changes) touch(posn, end string) bool {
	file, from, _ := SplitPosn(posn)
	_, to, _ := SplitPosn(end)
	rel := filepath.ToSlash(relative(c.root, file))
	if c.whole[rel] {
		return true
	}
	for _, r := range c.lines[rel] {
		if r.from <= max(from, to) && from <= r.to {
			return true
		}
	}
	return false
}
