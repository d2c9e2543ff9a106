package progress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is the program that runs in the pseudo terminals of the tests, if it is told which.
func TestMain(m *testing.M) {
	program := os.Getenv("ASYNCGEN_TEST_BAR")
	if program == "" {
		os.Exit(m.Run())
	}
	in := bufio.NewReader(os.Stdin)
	o := Options{Label: "epoch 1"}
	if program == "dumb" {
		os.Setenv("TERM", "dumb")
	}
	b := New(8, o)
	defer b.Close()
	for i := range 4 {
		b.drawn = b.drawn.Add(-time.Second) // it is time to draw
		b.Step("loss", 1/float64(i+1))
		switch {
		case i < 2:
		case program == "panic":
			panic("diverged")
		case program == "break":
			return
		case program == "interrupt", program == "resize":
			in.ReadString('\n') // what the test is waiting for is on the screen
		}
	}
}

// A screen is a pseudo terminal, with what a program has written to it.
type screen struct {
	t      *testing.T
	master *os.File
	text   strings.Builder
	cmd    *exec.Cmd
}

// start runs the program in a new pseudo terminal, which is the one that the program is controlled from.
func start(t *testing.T, program string, width int, env ...string) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("the pseudo terminal can't be opened: %v", err)
	}
	s := &screen{t: t, master: master, cmd: exec.Command(os.Args[0])}
	s.resize(width)
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm", "ASYNCGEN_TEST_BAR="+program), env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	return s
}

func (s *screen) resize(width int) {
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}); err != nil {
		s.t.Fatal(err)
	}
}

// until reads until the program has written text, or has ended.
func (s *screen) until(text string) {
	s.t.Helper()
	block := make([]byte, 4096)
	for text == "" || !strings.Contains(s.text.String(), text) {
		n, err := s.master.Read(block)
		s.text.Write(block[:n])
		if errors.Is(err, syscall.EIO) || err == io.EOF { // nobody has the other side open
			if text != "" {
				s.t.Fatalf("the program has ended; it wrote\n%q", s.text.String())
			}
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// end waits until the program has ended, and returns how, and the lines that can be seen then.
func (s *screen) end() (how string, lines []string) {
	s.t.Helper()
	s.until("")
	err := s.cmd.Wait()
	text := s.text.String()
	for _, escape := range []string{"\x1b", "\x9b", "\a"} {
		if strings.Contains(text, escape) {
			s.t.Errorf("the program changes the terminal: %q", text)
		}
	}
	for _, r := range text {
		if r > 126 {
			s.t.Errorf("%q is not ASCII: %q", r, text)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		seen := ""
		for part := range strings.SplitSeq(strings.TrimRight(line, "\r"), "\r") {
			seen = part + seen[min(len(seen), len(part)):]
		}
		lines = append(lines, strings.TrimRight(seen, " "))
	}
	return fmt.Sprint(err), lines
}

// The bar fits the terminal, and its line ends however the loop is left.
func TestTerminal(t *testing.T) {
	t.Run("break", func(t *testing.T) {
		s := start(t, "break", 70, "NO_COLOR=1", "LC_ALL=C")
		how, lines := s.end()
		if len(lines) != 2 || lines[1] != "" || how != "<nil>" {
			t.Errorf("%s: the screen has %q, want one line", how, lines)
		}
		if !strings.HasPrefix(lines[0], "epoch 1 3/8 [=") || !strings.Contains(lines[0], "] 38% ") || !strings.HasSuffix(lines[0], ", loss 0.3333") || len(lines[0]) != 69 {
			t.Errorf("the line is %q", lines[0])
		}
	})
	t.Run("panic", func(t *testing.T) {
		s := start(t, "panic", 70)
		how, lines := s.end()
		if len(lines) < 3 || !strings.Contains(lines[0], "loss 0.3333") || !strings.HasPrefix(lines[1], "panic: diverged") || how != "exit status 2" {
			t.Errorf("%s: the screen has %q", how, lines)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		s := start(t, "interrupt", 70)
		before, err := unix.IoctlGetTermios(int(s.master.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		s.until("loss 0.3333")
		if _, err := s.master.WriteString("\x03"); err != nil {
			t.Fatal(err)
		}
		after, err := unix.IoctlGetTermios(int(s.master.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		how, lines := s.end()
		if how != "signal: interrupt" || len(lines) != 1 {
			t.Errorf("%s: the screen has %q", how, lines)
		}
		if *before != *after {
			t.Errorf("the terminal has the modes %v, and had %v", after, before)
		}
	})
	t.Run("resize", func(t *testing.T) {
		s := start(t, "resize", 90)
		s.until("loss 0.3333")
		s.resize(60)
		if _, err := s.master.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		s.until("loss 0.25")
		if _, err := s.master.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		how, lines := s.end()
		if how != "<nil>" || len(lines) < 2 {
			t.Fatalf("%s: the screen has %q", how, lines)
		}
		if last := lines[len(lines)-2]; !strings.Contains(last, "epoch 1 4/8 [") || len(last) > 59 {
			t.Errorf("in 60 columns, the line is %q", last)
		}
	})
	t.Run("narrow", func(t *testing.T) {
		s := start(t, "break", 20)
		if how, lines := s.end(); how != "<nil>" || len(lines) != 2 || len(lines[0]) > 19 {
			t.Errorf("%s: in 20 columns, the screen has %q", how, lines)
		}
	})
	t.Run("dumb", func(t *testing.T) {
		s := start(t, "dumb", 70)
		if how, lines := s.end(); how != "<nil>" || len(lines) != 2 || strings.Contains(lines[0], "[") {
			t.Errorf("%s: the screen has %q", how, lines)
		}
	})
}
