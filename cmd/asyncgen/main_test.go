package main

import (
	"bytes"
	"strings"
	"testing"
)

// asyncgen runs the command in process and returns what it prints and how it exits.
func asyncgen(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), &env{strings.NewReader(""), &out, &errs}, args)
	return out.String(), errs.String(), code
}

// TestCommandTable checks that every command explains itself and refuses a
// flag that it does not have, in one line.
func TestCommandTable(t *testing.T) {
	list, _, code := asyncgen(t, "help")
	if code != exitOK {
		t.Fatalf("help exits with %d", code)
	}
	for _, c := range commands() {
		if !strings.Contains(list, "  "+c.name+" ") || !strings.Contains(list, c.short) {
			t.Errorf("help does not list %s", c.name)
		}
		if c.name == "help" {
			continue
		}
		text, stderr, code := asyncgen(t, "help", c.name)
		if want := strings.TrimSpace("usage: asyncgen " + c.name + " " + c.usage); code != exitOK || stderr != "" || !strings.HasPrefix(text, want+"\n") {
			t.Errorf("help %s exits with %d; want 0 and text that begins with %q:\n%s%s", c.name, code, want, text, stderr)
		}
		oneLine(t, exitTrouble, c.name, "-no-such-flag")
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // in the message
	}{
		{[]string{"frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"help", "frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"help", "vet", "compare"}, "one command at a time"},
		{[]string{"compare"}, "which package?"},
		{[]string{"compare", "./a", "./b"}, "one package at a time"},
		{[]string{"compare", "-count", "0", "./a"}, "-count is 0, want at least 1"},
		{[]string{"compare", "-times", "-3", "./a"}, "-times is -3"},
		{[]string{"compare", "-timeout", "-1s", "./a"}, "-timeout is -1s"},
		{[]string{"compare", "-mask", "(", "./a"}, "missing closing )"},
		{[]string{"compare", "-device", "abacus", "./a"}, `unknown device "abacus"`},
	} {
		if message := oneLine(t, exitTrouble, c.args...); !strings.Contains(message, c.want) {
			t.Errorf("asyncgen %s: %q, want a message with %q", strings.Join(c.args, " "), message, c.want)
		}
	}
}

// oneLine runs the command and returns the one line that it prints to standard
// error, and nothing else, before it exits with the given code.
func oneLine(t *testing.T, want int, args ...string) string {
	t.Helper()
	stdout, stderr, code := asyncgen(t, args...)
	if code != want || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "asyncgen: ") {
		t.Errorf("asyncgen %s: exit code %d, standard output %q, standard error %q; want %d and one line that begins with \"asyncgen: \"",
			strings.Join(args, " "), code, stdout, stderr, want)
	}
	return stderr
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"-version"}} {
		stdout, _, code := asyncgen(t, args...)
		if fields := strings.Fields(stdout); code != exitOK || len(fields) < 3 || fields[0] != "asyncgen" || !strings.HasPrefix(fields[2], "go1.") {
			t.Errorf("%v prints %q and exits with %d", args, stdout, code)
		}
	}
}
