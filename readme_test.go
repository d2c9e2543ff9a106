package asyncgen_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// notRun are the commands of README that .ci/run does not have, with the
// reason.
var notRun = map[string]string{
	"go mod init example.com/quickstart":                            "testdata/quickstart/go.mod is its result",
	"go get -tool github.com/asyncgen/asyncgen/cmd/asyncgen@latest": "so is its tool line; it needs the network",
}

var (
	fence = regexp.MustCompile("(?ms)^(?:<!-- (\\S+) -->\n)?```(\\w+)\n(.*?)^```$")
	link  = regexp.MustCompile(`\]\(([^)#:]+)\)`)
)

// TestReadme holds README's code against the files that it is from, its
// commands against .ci/run, and its links against the repository.
func TestReadme(t *testing.T) {
	readme := readText(t, "README.md")
	ci := map[string]bool{}
	for line := range strings.Lines(readText(t, ".ci/run")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "step ") {
			_, line, _ = strings.Cut(strings.TrimPrefix(line, "step '"), "' ")
		}
		ci[strings.TrimPrefix(line, "clean_tree ")] = true
	}
	for _, m := range fence.FindAllStringSubmatch(readme, -1) {
		file, language, text := m[1], m[2], m[3]
		switch language {
		case "go":
			if file == "" {
				t.Errorf("README: say above this code which file it is from, <!-- FILE -->:\n%s", text)
			} else if !strings.Contains(readText(t, file), text) {
				t.Errorf("README: this is not in %s:\n%s", file, text)
			}
		case "sh":
			for command := range strings.Lines(text) {
				command = strings.TrimSpace(command)
				if !ci[command] && notRun[command] == "" {
					t.Errorf("README: .ci/run does not run %q", command)
				}
			}
		default:
			t.Errorf("README: no check for code in %q", language)
		}
	}
	for _, m := range link.FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("README: dead link: %v", err)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
