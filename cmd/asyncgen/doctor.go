package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/overlay"
)

const doctorAbout = `
Doctor lists the devices that tensors can be computed on here, backend by
backend, and says why there are no others: which libraries were tried, what
they lack, which code a driver gave, which devices were found and not taken.

It builds and runs a program that has all backends, with the module of the
folder where it is called, whose files stay as they are, or, if that does not have asyncgen, with
the release that this command is of. This command itself has none: with one it would need libraries
of the system.
`

// doctorPackage is the program.
const doctorPackage = "github.com/asyncgen/asyncgen/device/doctor"

func doctor(ctx context.Context, e *env, args []string) int {
	fs := e.flags("doctor", doctorAbout)
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if fs.NArg() > 0 {
		return e.trouble("doctor: there are no arguments")
	}
	temp, err := os.MkdirTemp("", "asyncgen-doctor-")
	if err != nil {
		return e.trouble("doctor: %v", err)
	}
	defer os.RemoveAll(temp)
	program, err := buildDoctor(ctx, temp)
	if err != nil {
		return e.trouble("doctor: %v", err)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdout, cmd.Stderr = e.stdout, e.stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return e.trouble("doctor: a program with GPU backends does not work here: %v", err)
	}
	if err != nil {
		return e.trouble("doctor: a program with GPU backends does not start here, which needs the system's C library, glibc on Linux: %v", err)
	}
	return exitOK
}

// buildDoctor builds the program in a folder, and returns its file. It tries the module of the
// current folder first: as it is, and with the checksums that its go.sum lacks. If that fails, it
// takes the release of asyncgen that this command belongs to.
func buildDoctor(ctx context.Context, folder string) (program string, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("it builds a program that has all backends, and for that needs the go command: %w", err)
	}
	program = filepath.Join(folder, "doctor.exe")
	if err = goCommand(ctx, "", "build", "-o", program, doctorPackage); err == nil {
		return program, nil
	}
	if flags, ok := overlay.ModuleFlags(ctx, "", folder); ok && goCommand(ctx, "", slices.Concat([]string{"build"}, flags, []string{"-o", program, doctorPackage})...) == nil {
		return program, nil
	}
	v := ownVersion()
	if !strings.HasPrefix(v, "v") || strings.HasSuffix(v, "+dirty") {
		return "", fmt.Errorf("the module of this folder does not have what it takes, and this command (%s) is of no release that could be had instead: "+
			"call it where a go.mod requires github.com/asyncgen/asyncgen\n%w", v, err)
	}
	install := goCommand(ctx, "GOBIN="+folder, "install", doctorPackage+"@"+v)
	if install != nil {
		return "", errors.Join(err, install)
	}
	installed, missing := filepath.Glob(filepath.Join(folder, "doctor*"))
	if missing != nil || len(installed) == 0 {
		return "", err
	}
	return installed[0], nil
}

// goCommand runs the go command. The error has what it printed.
func goCommand(ctx context.Context, env string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	if env != "" {
		cmd.Env = append(os.Environ(), env)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
