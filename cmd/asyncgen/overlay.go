package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/overlay"
)

// overlaid returns the command that runs the go command of the same name with
// rewritten sources.
func overlaid(name string) func(context.Context, *env, []string) int {
	return func(ctx context.Context, e *env, args []string) int {
		if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			fs := e.flags(name, "Like \"go "+name+"\", with all functions of the named packages, and of the packages of\n"+
				"the same module that they need, rewritten so that they do not wait in loops.\n"+
				"No file is changed. All flags are those of \"go "+name+"\".")
			code, _ := e.parse(fs, args)
			return code
		}
		flags, packages, err := goArgs(name, args)
		if err != nil {
			return e.trouble("%v", err)
		}
		result, err := gen.Generate(ctx, gen.Config{Patterns: packages, BuildFlags: flags, All: true})
		if err != nil {
			return e.trouble("%v", err)
		}
		o, err := overlay.Of(result)
		if err != nil {
			return e.trouble("%v", err)
		}
		defer o.Close()
		cmd := overlay.Command(ctx, append([]string{name, o.Flag()}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdin, e.stdout, e.stderr
		err = cmd.Run()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return exitFindings // go has said why
		}
		if err != nil {
			return e.trouble("%s: %v", name, err)
		}
		return exitOK
	}
}

// buildFlags are the flags of the go command that decide which files are
// built.
var buildFlags = []string{"tags", "mod", "modfile", "race", "msan", "asan"}

// The flags of go run, build and test, without a value and with one.
// -overlay is ours.
var (
	goSwitches = strings.Fields(`a n v x work race msan asan cover trimpath linkshared modcacherw i json c short benchmem failfast
		fullpath artifacts buildvcs`)
	goValues = strings.Fields(`C o p exec tags mod modfile asmflags buildmode compiler gccgoflags gcflags installsuffix ldflags pgo
		pkgdir toolexec covermode coverpkg coverprofile bench benchtime blockprofile blockprofilerate count cpu cpuprofile fuzz
		fuzztime fuzzminimizetime list memprofile memprofilerate mutexprofile mutexprofilefraction outputdir parallel run shuffle
		skip timeout trace vet`)
)

// goArgs finds, among the arguments of a go command, the flags that decide
// which files are built, and the packages.
func goArgs(name string, args []string) (flags, packages []string, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "-args" || arg == "--args" {
			break
		}
		if !strings.HasPrefix(arg, "-") || name == "run" && len(packages) > 0 {
			isFile := strings.HasSuffix(arg, ".go")
			if name == "run" && len(packages) > 0 && !(isFile && strings.HasSuffix(packages[0], ".go")) {
				break // the rest is for the program
			}
			packages = append(packages, arg)
			continue
		}
		flag, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		takesNext := !hasValue && slices.Contains(goValues, flag) && i+1 < len(args)
		if !slices.Contains(goValues, flag) && !slices.Contains(goSwitches, flag) {
			return nil, nil, fmt.Errorf("%s: go %s has no flag -%s that can be used here", name, name, flag)
		}
		if slices.Contains(buildFlags, flag) {
			flags = append(flags, arg)
			if takesNext {
				flags = append(flags, args[i+1])
			}
		}
		if takesNext {
			i++
		}
	}
	return flags, packages, nil
}
