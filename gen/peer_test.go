package gen_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// peerProgram talks to its standard input: it answers before it asks again. In
// each of its kernels the peer needs an output of the loop before it lets the
// loop go on, in another way.
const peerProgram = `package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

//asyncgen:kernel
func Reader(in *bufio.Reader, out io.Writer, n int) error {
	w := tensor.Ones(2)
	for i := range n {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			line, err := in.ReadString('\n')
			if err != nil {
				return err
			}
			fmt.Fprint(out, "got ", line)
		}
	}
	return nil
}

//asyncgen:kernel
func Scanner(in *bufio.Reader, out io.Writer, n int) error {
	sc := bufio.NewScanner(in)
	w := tensor.Ones(2)
	for i := 0; i < n; i++ {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			if !sc.Scan() {
				break
			}
			fmt.Fprintln(out, "got", sc.Text())
		}
	}
	return sc.Err()
}

// lines hands on what it reads.
func lines(in *bufio.Reader) <-chan string {
	c := make(chan string)
	go func() {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				close(c)
				return
			}
			c <- line
		}
	}()
	return c
}

//asyncgen:kernel
func Channel(in *bufio.Reader, out io.Writer, n int) error {
	c := lines(in)
	w := tensor.Ones(2)
	for i := range n {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			fmt.Fprint(out, "got ", <-c)
		}
	}
	return nil
}

//asyncgen:kernel
func Select(in *bufio.Reader, out io.Writer, n int) error {
	c := lines(in)
	w := tensor.Ones(2)
	for i := range n {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			select {
			case line := <-c:
				fmt.Fprint(out, "got ", line)
			case <-time.After(time.Hour):
			}
		}
	}
	return nil
}

//asyncgen:kernel
func Connection(in *bufio.Reader, out io.Writer, n int) error {
	here, there := net.Pipe()
	go io.Copy(there, in)
	buf := make([]byte, 100)
	w := tensor.Ones(2)
	for i := range n {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			k, err := here.Read(buf)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "got %s", buf[:k])
		}
	}
	return nil
}

// ask is a function of the program that waits for input.
func ask(in *bufio.Reader) (string, error) { return in.ReadString('\n') }

//asyncgen:kernel
func Function(in *bufio.Reader, out io.Writer, n int) error {
	w := tensor.Ones(2)
	for i := range n {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			line, err := ask(in)
			if err != nil {
				return err
			}
			fmt.Fprint(out, "got ", line)
		}
	}
	return nil
}

// A source is behind an interface.
type source interface {
	//asyncgen:effects input
	Next() string
}

type stdin struct{ *bufio.Reader }

func (s stdin) Next() string { line, _ := s.ReadString('\n'); return line }

//asyncgen:kernel
func Interface(in *bufio.Reader, out io.Writer, n int) error {
	var s source = stdin{in}
	w := tensor.Ones(2)
	for i := range n {
		w = w.AddScalar(1)
		fmt.Fprintln(out, i, w.Sum().Item())
		if i%2 == 1 {
			fmt.Fprint(out, "got ", s.Next())
		}
	}
	return nil
}

func main() {
	kernels := map[string][2]func(*bufio.Reader, io.Writer, int) error{
		"Reader": {Reader, ReaderAsync}, "Scanner": {Scanner, ScannerAsync}, "Channel": {Channel, ChannelAsync}, "Select": {Select, SelectAsync},
		"Connection": {Connection, ConnectionAsync}, "Function": {Function, FunctionAsync}, "Interface": {Interface, InterfaceAsync},
	}
	form := 0
	if os.Args[2] == "async" {
		form = 1
	}
	if err := kernels[os.Args[1]][form](bufio.NewReader(os.Stdin), os.Stdout, 8); err != nil {
		fmt.Println(err)
	}
}
`

// TestPeer: a loop that prints values and then waits for somebody who has to see
// them goes on as the original does: nothing is held back.
func TestPeer(t *testing.T) {
	turns.Take(t)
	dir := gentest.NewModule(t)
	gentest.Write(t, filepath.Join(dir, "main.go"), []byte(peerProgram))
	r, err := generate(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "peer")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".") // without what debuggers need
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, kernel := range []string{"Reader", "Scanner", "Channel", "Select", "Connection", "Function", "Interface"} {
		if text := string(r.Files[0].Text); !strings.Contains(text, lowered("const %sWindow = 64", kernel)) {
			t.Errorf("%s is not rewritten:\n%v", kernel, r.Remarks)
		}
		for _, device := range []string{"cpu", "sim:0"} {
			t.Run(kernel+"/"+device, func(t *testing.T) {
				want := talk(t, binary, kernel, "plain", device)
				if got := talk(t, binary, kernel, "async", device); !slices.Equal(got, want) || len(want) != 12 {
					t.Errorf("the rewritten program says\n%s\nand the original\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

func lowered(format, kernel string) string {
	return fmt.Sprintf(format, strings.ToLower(kernel[:1])+kernel[1:])
}

// talk runs a program and gives it a line whenever it has printed two numbers. It
// returns what the program prints.
func talk(t *testing.T, binary, kernel, form, device string) (lines []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it waits for us, and we for it
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, kernel, form)
	cmd.Env = append(os.Environ(), "ASYNCGEN_DEVICE="+device, "ASYNCGEN_SIM=n=1,launch=0us,latency=20us,copy=5us")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(out); sc.Scan(); {
		lines = append(lines, sc.Text())
		var i int
		if n, _ := fmt.Sscanf(sc.Text(), "%d ", &i); n == 1 && i%2 == 1 {
			fmt.Fprintf(in, "answer to %s\n", sc.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s %s on %s: %v after %q", kernel, form, device, err, lines)
	}
	return lines
}
