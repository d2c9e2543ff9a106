// Command asyncgen keeps programs that use the asyncgen runtime asynchronous:
// it rewrites kernels so that they never wait in a loop, finds calls that
// wait, compares a program as written with the same program rewritten, and
// shows what a traced run waited for.
//
// Run "asyncgen help" for the list of commands and "asyncgen help COMMAND" for
// the flags of one. Exit codes: 0 fine, 1 findings or differences, 2 usage or
// trouble.
//
// The package holds flags and printing only; the work is done by the packages
// gen, gen/compare, analysis and internal/trace.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen"
)

// The exit codes of every command.
const (
	exitOK       = 0
	exitFindings = 1 // the command worked, and found something
	exitTrouble  = 2 // usage, or the command could not do its work
)

// A command is one row of the table below.
type command struct {
	name  string
	usage string // what follows the name: "[flags] PACKAGE"
	short string // one line for the list
	run   func(ctx context.Context, e *env, args []string) int
}

// commands lists every command, in the order in which help shows them. The
// first runs when no command is named, as in //go:generate go tool asyncgen.
func commands() []command {
	return []command{
		{"generate", "[flags] [packages]", "rewrite marked functions so that they do not wait in loops", generate},
		{"vet", "[flags] [packages]", "find calls that wait in loops, and other mistakes with asynchrony", vet},
		{"compare", "[flags] PACKAGE [-- ARGUMENTS]", "a program as written against the same program rewritten", compareCommand},
		{"run", "[go flags] PACKAGE [args]", "go run, with rewritten sources", overlaid("run")},
		{"build", "[go flags] [packages]", "go build, with rewritten sources", overlaid("build")},
		{"test", "[go flags] [packages]", "go test, with rewritten sources", overlaid("test")},
		{"trace", "[flags] FILE", "what a traced run waited for, line by line, and as a page for browsers", traceCommand},
		{"explain", "[CODE]", "what a rule or a remark means, with examples", explain},
		{"doctor", "", "devices that tensors can be computed on here, and why there are no others", doctor},
		{"help", "[COMMAND]", "list the commands, or explain one", help},
		{"version", "", "print the version of asyncgen and of Go", version},
	}
}

// env is what a command sees of the world, so that tests can run one in process.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

func main() {
	if analysis.IsUnit(os.Args[1:]) {
		analysis.Unit() // go vet or go fix runs its tool
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, &env{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:]))
}

// run executes the command that args name and returns its exit code. Words
// that name no command, flags and package patterns, are arguments of the first.
func run(ctx context.Context, e *env, args []string) int {
	table := commands()
	if len(args) == 0 {
		return table[0].run(ctx, e, args)
	}
	switch args[0] {
	case "-h", "-help", "--help":
		return help(ctx, e, nil)
	case "-version", "--version":
		return version(ctx, e, nil)
	}
	for _, c := range table {
		if c.name == args[0] {
			return c.run(ctx, e, args[1:])
		}
	}
	if isMistyped(args[0]) {
		return e.trouble("unknown command %q: run \"asyncgen help\" for the list", args[0])
	}
	return table[0].run(ctx, e, args)
}

// isMistyped reports whether word can be neither a flag nor a package pattern:
// a single word that is no folder here.
func isMistyped(word string) bool {
	if strings.HasPrefix(word, "-") || strings.ContainsAny(word, "./\\") {
		return false
	}
	info, err := os.Stat(word)
	return err != nil || !info.IsDir()
}

// trouble prints what is wrong to standard error and returns exitTrouble.
func (e *env) trouble(format string, args ...any) int {
	e.message("%s", strings.TrimSpace(fmt.Sprintf(format, args...)))
	return exitTrouble
}

// message prints to standard error, what does not print, as in names of files, as in string literals of Go.
func (e *env) message(format string, args ...any) {
	fmt.Fprintf(e.stderr, "asyncgen: %s\n", tensorapi.VisibleLines(fmt.Sprintf(format, args...)))
}

// A visible writer writes lines to w. Characters that don't print become escape sequences, as in string
// literals of Go. Each call writes whole characters.
type visible struct{ w io.Writer }

func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.w, tensorapi.VisibleLines(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// packages returns what follows the flags of a command, if these words may be packages. Other words
// it refuses: the go command would take some for its own flags, such as -toolexec, which runs any
// program.
func (e *env) packages(fs *flag.FlagSet) (words []string, ok bool) {
	for _, word := range fs.Args() {
		if why := gen.NoPackage(word); why != "" {
			e.trouble("%s: %s", fs.Name(), why)
			return nil, false
		}
	}
	return fs.Args(), true
}

// flags returns an empty flag set for the command with the given name, whose
// help text is usage line, about, and the flags.
func (e *env) flags(name, about string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // parse reports errors itself, in one line
	fs.Usage = func() {
		usage := ""
		for _, c := range commands() {
			if c.name == name {
				usage = c.usage
			}
		}
		fmt.Fprintf(fs.Output(), "usage: asyncgen %s\n\n%s\n", strings.TrimSpace(name+" "+usage), strings.TrimSpace(about))
		hasFlags := false
		fs.VisitAll(func(*flag.Flag) { hasFlags = true })
		if hasFlags {
			fmt.Fprint(fs.Output(), "\nFlags:\n")
			fs.PrintDefaults()
		}
	}
	return fs
}

// parse parses args into fs. When it returns false the command is over, with
// the given exit code: help was printed, or what is wrong with the flags.
func (e *env) parse(fs *flag.FlagSet, args []string) (code int, ok bool) {
	err := fs.Parse(args)
	switch {
	case err == nil:
		return exitOK, true
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(e.stdout)
		fs.Usage()
		return exitOK, false
	}
	return e.trouble("%s: %v%s: run \"asyncgen help %s\" for its flags", fs.Name(), err, meantFlag(fs, err), fs.Name()), false
}

// meantFlag proposes the flag that was probably meant, if err is that there is no such flag.
func meantFlag(fs *flag.FlagSet, err error) string {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !ok {
		return ""
	}
	var known []string
	fs.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	return lint.DidYouMean(name, known)
}

func help(ctx context.Context, e *env, args []string) int {
	switch {
	case len(args) > 1:
		return e.trouble("help: one command at a time")
	case len(args) == 1 && args[0] != "help":
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, e, []string{"-h"})
			}
		}
		return e.trouble("help: unknown command %q: run \"asyncgen help\" for the list", args[0])
	}
	fmt.Fprint(e.stdout, `asyncgen keeps Go programs that use the asyncgen runtime asynchronous.

usage: asyncgen [COMMAND] [flags] [arguments]

Commands:
`)
	for i, c := range commands() {
		fmt.Fprintf(e.stdout, "  %-9s %s", c.name, c.short)
		if i == 0 {
			fmt.Fprint(e.stdout, " (the default)")
		}
		fmt.Fprintln(e.stdout)
	}
	fmt.Fprint(e.stdout, `
Run "asyncgen help COMMAND" for the flags of one.
Exit codes: 0 fine, 1 findings or differences, 2 usage or trouble.
`)
	return exitOK
}

func version(ctx context.Context, e *env, args []string) int {
	fs := e.flags("version", "Version prints the version of asyncgen and of the Go that built it.")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	if fs.NArg() > 0 {
		return e.trouble("version: there are no arguments")
	}
	goVersion := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
	}
	fmt.Fprintln(e.stdout, "asyncgen", ownVersion(), goVersion)
	return exitOK
}

// ownVersion is the version of this program.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown)"
}
