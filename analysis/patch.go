package analysis

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	oldFile = regexp.MustCompile(`^--- (.*) \(old\)\n$`)
	newFile = regexp.MustCompile(`^\+\+\+ (.*) \(new\)\n$`)
	ranges  = regexp.MustCompile(`^@@ -(\d+)((?:,\d+)?) \+\d+((?:,\d+)?) @@\n$`)
)

// patch makes of what go vet -fix -diff prints a patch of files in some folders. It names them relative to
// dir, as patch -p0 and git apply -p0 want it. The go command calls them /a/b.go (old), has those of imported
// packages, too, if an earlier run has left them, and from the second change of a file on miscounts the lines.
func patch(diff, dir string, folders []string) string {
	var b strings.Builder
	asked, shift := false, 0
	for line := range strings.Lines(diff) {
		if m := oldFile.FindStringSubmatch(line); m != nil {
			asked, shift = slices.Contains(folders, filepath.Dir(m[1])), 0
			line = "--- " + filepath.ToSlash(relative(dir, m[1])) + "\n"
		} else if m := newFile.FindStringSubmatch(line); m != nil {
			line = "+++ " + filepath.ToSlash(relative(dir, m[1])) + "\n"
		} else if m := ranges.FindStringSubmatch(line); m != nil {
			start, _ := strconv.Atoi(m[1])
			line = fmt.Sprintf("@@ -%s%s +%d%s @@\n", m[1], m[2], start+shift, m[3])
			shift += rangeLength(m[3]) - rangeLength(m[2])
		}
		if asked {
			b.WriteString(line)
		}
	}
	return b.String()
}

// rangeLength is how many lines a range of a diff has, by what follows its first: ",3", or nothing for one.
func rangeLength(s string) int {
	if s == "" {
		return 1
	}
	n, _ := strconv.Atoi(s[1:])
	return n
}
