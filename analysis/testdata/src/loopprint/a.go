package loopprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

var w *tensor.Tensor

func step(b Batch) *tensor.Tensor { return b.X.MatMul(w).Sub(b.Y).Mean() }

type record struct {
	Step int
	Loss *tensor.Tensor
}

type hidden struct{ loss *tensor.Tensor }

type speaks struct{ Loss *tensor.Tensor }

func (speaks) String() string { return "a record" }

type encodes struct{ Loss *tensor.Tensor }

func (*encodes) MarshalJSON() ([]byte, error) { return nil, nil }

type nested struct {
	Step   int
	Record *record
}

type omits struct {
	Step int
	Loss *tensor.Tensor `json:"-"`
}

func prints(data []Batch, logger *log.Logger, l *slog.Logger, format string) {
	for i, b := range data {
		a := step(b)
		fmt.Println(i, a) // want `blocking print in loop: fmt.Println waits for a in each iteration; print after the loop, or only every so many iterations \[AT004\]`
		c := step(b)
		fmt.Fprintf(os.Stderr, "%d %v\n", i, c) // want `fmt.Fprintf waits for c in each`
		d := step(b)
		_ = fmt.Sprint(d) // want `fmt.Sprint waits for d`
		e := step(b)
		log.Printf("loss %.3f", e.Item()) // want `e.Item\(\) waits for the device in each`
		f := step(b)
		logger.Print("loss", f) // want `logger.Print waits for f`
		g := step(b)
		l.Info("step", "loss", g) // want `l.Info waits for g`
		h := step(b)
		fmt.Println(record{i, h}, []*tensor.Tensor{h}) // want `waits for record{.*}`
		j := step(b)
		v := j.Item() // want `j.Item\(\) waits for the device`
		fmt.Println("loss", v/2)
		k := step(b)
		fmt.Println(&record{Loss: k}) // want `waits for &record`
		m := step(b)
		n := step(b)
		_ = json.NewEncoder(os.Stderr).Encode(map[string]any{"step": i, "loss": n}) // want `Encode waits for map`
		o := step(b)
		log.Println([]any{"loss", []any{o}}) // want `log.Println waits for \[\]any`
		log.Println([]any{"step", i}, map[string]any{"batch": hidden{o}})
		_ = m.String()                             // want `m.String\(\) waits for m`
		_ = errors.New(fmt.Sprintf("%v", step(b))) // want `fmt.Sprintf`
	}
}

// Package json does not ask for a String method, and follows pointers.
func encoded(data []Batch) {
	for i, b := range data {
		a, c, d := step(b), step(b), step(b)
		_, _ = json.Marshal(speaks{a})                                    // want `json.Marshal waits for speaks`
		_, _ = json.MarshalIndent(&nested{i, &record{i, c}}, "", "\t")    // want `json.MarshalIndent waits for &nested`
		_, _ = json.Marshal([]any{"loss", d})                             // want `json.Marshal waits for \[\]any`
		_, _ = json.Marshal([]any{encodes{d}, omits{i, d}, hidden{d}, i}) // silent
		fmt.Println(encodes{d}, nested{i, &record{i, d}}, omits{i, d})    // want `fmt.Println waits for encodes`
	}
}

func silent(data []Batch, l *slog.Logger, format string, args ...any) {
	for i, b := range data {
		loss := step(b)
		fmt.Printf("%T %p %i %d\n", loss, loss, loss, i)
		fmt.Printf("%%v %d\n", i)
		fmt.Printf("%d\n", loss.Dim(0))
		fmt.Printf(format, loss)
		fmt.Printf("%[1]v\n", loss)
		fmt.Println(args...)
		fmt.Println(hidden{loss}, speaks{loss})
		l.Debug("step", "loss", loss)
		if i%10 == 0 {
			fmt.Println(loss)
		}
		fmt.Println(b.X, w)
	}
	fmt.Println(step(data[0]))
}

func both(data []Batch) (total float64) {
	for _, b := range data {
		v := step(b).Item() // AT001 reports it
		fmt.Println(v)
		total += v
	}
	return
}

// complaints are made rarely, if there is a condition for them.
func complaints(data []batch.Batch) (list []error) {
	for i, b := range data {
		y := batch.Loss(w, b)
		if y.Dim(0) != 3 {
			list = append(list, fmt.Errorf("batch %d: %v", i, y))
			list = append(list, fmt.Errorf("batch %d: %v", i, y.Item()))
		}
		list = append(list, fmt.Errorf("loss %v", y)) // want `fmt.Errorf waits for y`
	}
	return
}

func atTheEndOfLiterals(data []Batch, w *tensor.Tensor) (total float64) {
	for _, b := range data {
		func() {
			loss := batch.Loss(w, b)
			defer fmt.Println(loss) // want `AT004`
		}()
		func() {
			loss := batch.Loss(w, b)
			defer func() { fmt.Println(loss.Item()) }() // want `AT004`
		}()
		func() {
			loss := batch.Loss(w, b)
			defer func() { total += loss.Item() }() // AT001
		}()
	}
	return total
}
