package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/asyncgen/asyncgen/gen"
)

// generate writes the rewritten siblings of marked functions.
func generate(ctx context.Context, e *env, args []string) int {
	fs := e.flags("generate", `Generate writes, for every function marked with

	//asyncgen:kernel [name=F] [window=64] [ahead=8] [off=defer-print] [test=F[int]] [strict]

a version that does not wait in its loops, into a file next to the one where
the function stands: train.go gets train_async.go, and Train gets TrainAsync.
The packages default to the one in the current folder. In a source file:

	//go:generate go tool asyncgen

"asyncgen explain AG201" explains a remark.`)
	check := fs.Bool("check", false, "write nothing; print what would change, and exit with 1 if anything would")
	diff := fs.Bool("diff", false, "write nothing; print what would change")
	asJSON := fs.Bool("json", false, "print the remarks as JSON")
	strict := fs.Bool("strict", false, "treat every function as marked strict: refuse what differs in time from the original, and exit with 1 if a wait is left in a loop")
	verbose := fs.Bool("v", false, "print all remarks, not only what was refused")
	tags := fs.String("tags", "", "build `tags`, as for the go command")
	if code, ok := e.parse(fs, args); !ok {
		return code
	}
	patterns, ok := e.packages(fs)
	if !ok {
		return exitTrouble
	}
	cfg := gen.Config{Patterns: patterns, Strict: *strict}
	if *tags != "" {
		cfg.BuildFlags = []string{"-tags=" + *tags}
	}
	result, err := gen.Generate(ctx, cfg)
	if errors.Is(err, gen.ErrNoKernel) && len(patterns) == 0 {
		return e.trouble("%v in this folder; ./... stands for all packages below it", err)
	}
	if err != nil {
		return e.trouble("%v", err)
	}
	commit := result.Commit
	if *check || *diff {
		commit = result.MayCommit
	}
	if err := commit(); err != nil {
		return e.trouble("%v", err)
	}
	if err := printRemarks(e, result.Remarks, *asJSON, *verbose); err != nil {
		return e.trouble("generate: %v", err)
	}
	if *check || *diff {
		wd, err := os.Getwd()
		if err != nil {
			return e.trouble("generate: %v", err)
		}
		changes := result.Diff(wd)
		if _, err := e.stdout.Write(changes); err != nil {
			return e.trouble("generate: %v", err)
		}
		if *check && len(changes) > 0 {
			e.message("generated files are out of date: run go generate")
			return exitFindings
		}
	}
	if len(result.Waits()) > 0 {
		return exitFindings
	}
	return exitOK
}

// printRemarks prints remarks to standard error or, as JSON, to standard
// output.
func printRemarks(e *env, remarks []gen.Remark, asJSON, verbose bool) error {
	if asJSON {
		out, err := json.MarshalIndent(remarks, "", "\t")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.stdout, "%s\n", out)
		return err
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range remarks {
		if verbose || r.Verdict == gen.Refused {
			_, err := fmt.Fprintln(e.stderr, r.Format(wd))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
