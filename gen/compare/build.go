package compare

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/overlay"
)

// programs are the two forms of a package, built.
type programs struct {
	original, rewritten string   // paths of the executables
	testDir             string   // of the package, if they are its test binaries
	applied, refused    []string // what the generator has done and has not, a line each
}

// build builds both forms of cfg.Package into the folder temp.
func build(ctx context.Context, cfg Config, temp string) (*programs, error) {
	cfg.Progress("building " + cfg.Package)
	command := []string{"build", "-buildvcs=false"}
	testDir := ""
	if cfg.Bench != "" {
		var err error
		if testDir, err = checkTests(ctx, cfg); err != nil {
			return nil, err
		}
		command = []string{"test", "-buildvcs=false", "-vet=off", "-c"}
	} else if err := checkMain(ctx, cfg); err != nil {
		return nil, err
	}
	p := &programs{testDir: testDir, original: filepath.Join(temp, "original"+exe()), rewritten: filepath.Join(temp, "rewritten"+exe())}
	if _, err := goCommand(ctx, cfg, slices.Concat(command, []string{"-o", p.original, cfg.Package})...); err != nil {
		return nil, err
	}

	cfg.Progress("rewriting " + cfg.Package)
	result, err := gen.Generate(ctx, gen.Config{Dir: cfg.Dir, Patterns: []string{cfg.Package}, All: true})
	if err != nil {
		return nil, err
	}
	for _, m := range result.Remarks {
		switch m.Verdict {
		case gen.Applied:
			p.applied = append(p.applied, m.Format(cfg.Dir))
		case gen.Refused:
			p.refused = append(p.refused, m.Format(cfg.Dir))
		}
	}
	o, err := overlay.Of(result)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	cfg.Progress("building " + cfg.Package + ", rewritten")
	_, err = goCommand(ctx, cfg, slices.Concat(command, []string{o.Flag(), "-o", p.rewritten, cfg.Package})...)
	return p, err
}

// checkMain returns an error if cfg.Package is not one main package.
func checkMain(ctx context.Context, cfg Config) error {
	out, err := goCommand(ctx, cfg, "list", "-f", "{{.Name}} {{.ImportPath}}", cfg.Package)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 1 {
		return fmt.Errorf("%s is %d packages, not one", cfg.Package, len(lines))
	}
	if name, path, _ := strings.Cut(lines[0], " "); name != "main" {
		return fmt.Errorf("%s is no program: its package is called %s, not main", path, name)
	}
	return nil
}

// goCommand runs the go command and returns its standard output. The error
// is what it prints to standard error.
func goCommand(ctx context.Context, cfg Config, args ...string) (string, error) {
	cmd := overlay.Command(ctx, args...)
	cmd.WaitDelay = 5 * time.Second // for a linker that is not done yet
	cmd.Dir = cfg.Dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		return "", fmt.Errorf("go %s: %s", args[0], text)
	}
	return string(out), err
}

// exe is how the names of executables end.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
