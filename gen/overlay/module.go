package overlay

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// ModuleFlags returns flags for the go command. With them it uses the module of the folder dir ("":
// the current one) as if its go.mod and go.sum had everything that is needed to build: it adds what
// they lack to copies in the folder to. A module that uses asyncgen need not know of what GPU
// backends import. It reports false if there is no such module, as in a workspace, or if it can't
// be copied.
func ModuleFlags(ctx context.Context, dir, to string) (flags []string, ok bool) {
	cmd := Command(ctx, "env", "GOMOD", "GOWORK")
	cmd.Dir = dir
	out, err := cmd.Output()
	file, work, _ := strings.Cut(strings.ReplaceAll(string(out), "\r", ""), "\n")
	work = strings.TrimSpace(work)
	if err != nil || filepath.Base(file) != "go.mod" || work != "" && work != "off" {
		return nil, false
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			return nil, false
		}
	}
	return []string{"-mod=mod", "-modfile=" + filepath.Join(to, "go.mod")}, true
}
