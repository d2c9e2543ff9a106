package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// Words after "--" reached the go command, which took -toolexec, the name of a program that it
// runs, for a flag of its own.
func TestHostileArguments(t *testing.T) {
	userModule(t, userSource)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tool, ran := filepath.Join(dir, "tool.sh"), filepath.Join(dir, "ran")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho >> '"+ran+"'\nexec \"$@\"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	for _, command := range [][]string{
		{}, {"generate"}, {"generate", "-check"}, {"generate", "-diff"}, {"vet"}, {"vet", "-fix"}, {"vet", "-json"}, {"vet", "-new-from=HEAD"},
		{"compare"}, {"compare", "-bench=."}, {"trace"}, {"run"}, {"build"}, {"test"}, {"explain"}, {"doctor"}, {"help"}, {"version"},
	} {
		for _, word := range []string{
			"-toolexec=" + tool, "--toolexec=" + tool, "-exec=" + tool, "-vettool=" + tool, "-o=" + ran, "-overlay=" + tool, "-modfile=" + tool,
			"-", "--", "", "a\x1b[31mb", "a\n::error::b", "\u202egpj",
		} {
			args := append(append([]string{}, command...), "--", word)
			stdout, stderr, code := asyncgen(t, args...)
			if code != exitTrouble || stdout != "" || !strings.HasPrefix(stderr, "asyncgen: ") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%q exits with %d:\n%s%s", args, code, stdout, stderr)
			}
			if strings.ContainsAny(stderr, "\x1b\u202e") {
				t.Errorf("%q prints %q", args, stderr)
			}
		}
	}
	if after := files(t, dir); after != before {
		t.Errorf("the files were\n%s\nand are\n%s", before, after)
	}
}

// files lists the files below dir.
func files(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// Generated files went to wherever a symbolic link led that stood for the folder of a package.
func TestGenerateBehindLinks(t *testing.T) {
	turns.Take(t)
	userModule(t, userSource)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, "deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{other, filepath.Join(other, "deep")} {
		if err := os.WriteFile(filepath.Join(folder, "k.go"), []byte(userSource), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(dir, "out")); err != nil {
		t.Skip(err) // on Windows that is a privilege
	}
	before := files(t, other)
	for _, args := range [][]string{{"./out"}, {"./out/deep"}, {"-check", "./out"}, {"-diff", "./out/deep"}, {".", "./out"}} {
		if message := oneLine(t, exitTrouble, args...); !strings.Contains(message, "is a symbolic link") {
			t.Errorf("%v: %q", args, message)
		}
	}
	t.Chdir("out")
	oneLine(t, exitTrouble, "generate")
	if after := files(t, other); after != before {
		t.Errorf("the files were\n%s\nand are\n%s", before, after)
	}
	if _, err := os.Stat(filepath.Join(dir, "main_async.go")); err == nil {
		t.Error("a file was written beside one that was refused")
	}

	// The module itself may well be behind a link.
	link := filepath.Join(t.TempDir(), "module")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(link)
	if _, stderr, code := asyncgen(t, "generate"); code != exitOK {
		t.Errorf("in a module behind a link, generate exits with %d:\n%s", code, stderr)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "main_async.go")); err != nil || !strings.HasPrefix(string(text), gen.Header) {
		t.Errorf("generated: %v\n%s", err, text)
	}
}

// A name of a file is no command to a terminal.
func TestHostileNames(t *testing.T) {
	turns.Take(t)
	userModule(t, userSource)
	name := "train\x1b[31m\u202e.go"
	if err := os.Rename("main.go", name); err != nil {
		t.Skip(err) // the file system does not take it
	}
	for _, args := range [][]string{
		{"-check"}, {"-diff"}, {"-v"}, {"vet", "-severity=info"}, {"vet", "-github", "-severity=info"}, {"compare", "-device=cpu", "-count=1", "."}, {"run", "."},
	} {
		stdout, stderr, _ := asyncgen(t, args...)
		if all := stdout + stderr; strings.ContainsAny(all, "\x1b\u202e") {
			t.Errorf("%v prints %q", args, all)
		}
	}
	matches, err := filepath.Glob("*_async.go")
	if err != nil || len(matches) != 1 {
		t.Fatalf("generated: %q, %v", matches, err)
	}
	for _, args := range [][]string{{"generate"}, {"-check"}} {
		if err := os.WriteFile(matches[0], []byte("package main\n\nfunc sumAsync() {}\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if message := oneLine(t, exitTrouble, args...); strings.ContainsAny(message, "\x1b\u202e") {
			t.Errorf("%v prints %q", args, message)
		}
	}
}
