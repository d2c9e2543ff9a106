package severity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A file is no client: who keeps what is computed of its lines may as well read all of it afterwards.

type lexicon struct {
	keys  []string
	words map[string]*tensor.Tensor
	level float64
	sum   float64
}

func (x *lexicon) load(r io.Reader, encode func(string) *tensor.Tensor) error {
	for in := bufio.NewScanner(r); in.Scan(); {
		key, text, _ := strings.Cut(in.Text(), " ")
		v := encode(text)
		if v.Norm().Item() == 0 { // want `AT005`
			return errors.New("empty " + key)
		}
		x.keys = append(x.keys, key)
		x.words[key] = v
	}
	return nil
}

func (x *lexicon) find(key string) *tensor.Tensor { return x.words[key] }

func (x *lexicon) count(r *bufio.Reader, encode func(string) *tensor.Tensor) (total float64) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return total
		}
		total += encode(line).Item() // want `AT001`
		x.sum += encode(line).Item() // want `AT001`
	}
}

func (x *lexicon) pick(r io.Reader, encode func(string) *tensor.Tensor, tell func(string)) {
	for in := bufio.NewScanner(r); in.Scan(); {
		if encode(in.Text()).Item() > 3 { // want `AT001`
			x.keys = append(x.keys, in.Text())
		}
	}
	for in := bufio.NewScanner(r); in.Scan(); {
		if encode(in.Text()).Item() > 3 {
			tell(in.Text())
		}
	}
}

// Somebody waits, or may look at the value at any time.

func (x *lexicon) watch(r io.Reader, w io.Writer, encode func(string) *tensor.Tensor) (total float64) {
	for in := bufio.NewScanner(r); in.Scan(); {
		fmt.Fprintln(w, encode(in.Text()).Item())
	}
	for in := bufio.NewScanner(r); in.Scan(); {
		fmt.Fprint(w, "> ")
		total += encode(in.Text()).Item()
	}
	for in := bufio.NewScanner(r); in.Scan(); {
		x.level = encode(in.Text()).Item()
	}
	return total
}

func typed(encode func(string) *tensor.Tensor) (total float64) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		total += encode(in.Text()).Item()
	}
	return total
}

func called(c net.Conn, encode func(string) *tensor.Tensor) (total float64) {
	for in := bufio.NewScanner(c); in.Scan(); {
		total += encode(in.Text()).Item()
	}
	return total
}

// A pipeline whose jobs come from elsewhere.
func piped(in io.Reader, encode func(string) *tensor.Tensor, out chan<- float64) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for line := range lines {
		out <- encode(line).Item()
	}
}

// Jobs that the function deals out itself are its own data, like a list.

type doc struct {
	name string
	x    []float32
}

type graded struct {
	doc
	score float64
}

func dealtOut(f func(*tensor.Tensor) *tensor.Tensor, jobs []doc, n int) (all []graded) {
	in, out := make(chan doc), make(chan graded, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for j := range in {
				out <- graded{j, f(tensor.From(j.x)).Item()} // want `AT001`
			}
		})
	}
	go func() {
		defer close(in)
		for _, j := range jobs {
			in <- j
		}
	}()
	go func() { wg.Wait(); close(out) }()
	for a := range out {
		all = append(all, a)
	}
	return all
}

// A worker by name, whose jobs a list has.

func dig(f func(*tensor.Tensor) *tensor.Tensor, in <-chan doc, out chan<- float64) {
	for d := range in {
		out <- f(tensor.From(d.x)).Item() // want `AT001`
	}
}

func answerer(f func(*tensor.Tensor) *tensor.Tensor, in <-chan doc, out chan<- float64) {
	for d := range in {
		out <- f(tensor.From(d.x)).Item()
	}
}

func mine(f func(*tensor.Tensor) *tensor.Tensor, docs []doc, asked <-chan doc) (total float64) {
	in, out := make(chan doc), make(chan float64)
	for range 4 {
		go dig(f, in, out)
	}
	go answerer(f, asked, out)
	go func() {
		defer close(in)
		for _, d := range docs {
			in <- d
		}
	}()
	for range docs {
		total += <-out
	}
	return total
}
