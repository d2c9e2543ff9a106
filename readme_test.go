package asyncgen_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notRun are the commands of README and the docs that .ci/run does not have, with the
// reason.
var notRun = map[string]string{
	"go mod init example.com/quickstart":                            "testdata/quickstart/go.mod is its result",
	"go get -tool github.com/asyncgen/asyncgen/cmd/asyncgen@latest": "so is its tool line; it needs the network",
	"git clone https://github.com/asyncgen/asyncgen":                "it needs the network",
	"git clone https://github.com/asyncgen/asyncgen && cd asyncgen": "so does this",
	"go -C asyncgen install ./cmd/asyncgen":                         "it would write to the user's folder; the tests build the command elsewhere",
}

var (
	fence   = regexp.MustCompile("(?ms)^(?:<!-- (\\S+) -->\n)?```(\\w*)\n(.*?)^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocs holds the code of README and the docs against the files that it is from, their
// commands against .ci/run, and their links against the repository.
func TestDocs(t *testing.T) {
	ci := map[string]bool{}
	for line := range strings.Lines(readText(t, ".ci/run")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "step ") {
			_, line, _ = strings.Cut(strings.TrimPrefix(line, "step '"), "' ")
		}
		ci[strings.TrimPrefix(line, "clean_tree ")] = true
	}
	used := map[string]bool{}
	for _, page := range pages(t) {
		text := readText(t, page)
		if !strings.HasPrefix(text, "<!-- Code generated ") { // the code of those is compiled where it is from
			for _, m := range fence.FindAllStringSubmatch(text, -1) {
				testFence(t, page, m[1], m[2], m[3], ci, used)
			}
		}
		testLinks(t, page, text)
		testTables(t, page, text)
	}
	for command := range notRun {
		if !used[command] {
			t.Errorf("no page has the command %q", command)
		}
	}
}

// A bug: for a day, .ci/run ran no job of cmd/e2e. Tests of jobs are skipped where no mpiexec is named, so the step
// that names one has to have their packages.
func TestJobsAreRun(t *testing.T) {
	_, step, _ := strings.Cut(readText(t, ".ci/run"), "local -x ASYNCGEN_TEST_MPIEXEC=")
	step, _, _ = strings.Cut(step, "\n}\n")
	found := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") || !strings.Contains(readText(t, file), `os.Getenv("ASYNCGEN_TEST_MPIEXEC")`) || file == "readme_test.go" {
			return err
		}
		found++
		if dir := " ./" + filepath.ToSlash(filepath.Dir(file)); !strings.Contains(step, dir) {
			t.Errorf("%s needs an mpiexec, and the step of .ci/run that has one does not test%s", file, dir)
		}
		return nil
	})
	if err != nil || found < 2 {
		t.Errorf("%d files need an mpiexec, error %v", found, err)
	}
}

// pages are README and the docs.
func pages(t *testing.T) (list []string) {
	t.Helper()
	list, err := filepath.Glob("*.md")
	if err == nil {
		err = filepath.WalkDir("docs", func(file string, d fs.DirEntry, err error) error {
			if path.Ext(file) == ".md" {
				list = append(list, filepath.ToSlash(file))
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// testTables reports rows that a table has twice, as the one of operations had.
func testTables(t *testing.T, page, text string) {
	rows := map[string]bool{}
	for line := range strings.Lines(text) {
		switch {
		case !strings.HasPrefix(line, "|"):
			clear(rows)
		case rows[line]:
			t.Errorf("%s: a table has a row twice: %s", page, line)
		default:
			rows[line] = true
		}
	}
}

// testFence checks the code between two fences, in a language, that is said to be from a file.
func testFence(t *testing.T, page, file, language, text string, ci, used map[string]bool) {
	switch language {
	case "go":
		if file == "" {
			t.Errorf("%s: say above this code which file it is from, <!-- FILE -->:\n%s", page, text)
		} else if !strings.Contains(readText(t, file), text) {
			t.Errorf("%s: this is not in %s:\n%s", page, file, text)
		}
	case "sh":
		if path.Dir(page) == "docs/guide" {
			return // TestGuide runs them
		}
		for command := range strings.Lines(text) {
			command = strings.TrimSpace(command)
			if page == "docs/linter/README.md" && strings.HasPrefix(command, "asyncgen ") {
				continue // TestRecipes runs them
			}
			used[command] = true
			if !ci[command] && notRun[command] == "" {
				t.Errorf("%s: .ci/run does not run %q", page, command)
			}
		}
	case "text", "json", "yaml", "python": // what programs print, settings, and how others do it
		if file != "" && !strings.Contains(readText(t, file), text) {
			t.Errorf("%s: this is not in %s:\n%s", page, file, text)
		}
	default:
		t.Errorf("%s: no check for code in %q", page, language)
	}
}

// testLinks checks that the links of a page lead to files, and to headings where they name one.
func testLinks(t *testing.T, page, text string) {
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		to, anchor, _ := strings.Cut(m[1], "#")
		target := page
		if to != "" {
			target = path.Join(path.Dir(page), to)
		}
		if _, err := os.Stat(target); err != nil {
			t.Errorf("%s: dead link: %v", page, err)
		} else if anchor != "" && !hasHeading(readText(t, target), anchor) {
			t.Errorf("%s: %s has no heading #%s", page, target, anchor)
		}
	}
}

// hasHeading reports whether a page has a heading with the anchor that GitHub gives it.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if slug == anchor {
			return true
		}
	}
	return false
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
