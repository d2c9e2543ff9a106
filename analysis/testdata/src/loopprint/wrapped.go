package loopprint

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"text/template"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// note prints its last argument, whatever that is; so does reply.
func note(name string, v any) { fmt.Println(name, v) }

func reply(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func pair(name string, a, b any) { log.Print(name, a, b) }

func kind(name string, v any) { fmt.Printf("%s %T\n", name, v) }

func debugNote(v any) { fmt.Println(v) }

func first(v any, name string) { fmt.Println(v, name) }

func fail(v any) {
	fmt.Println(v)
	os.Exit(1)
}

func wrap(data []Batch, l *slog.Logger, t *template.Template) {
	for _, b := range data {
		l.Info("step", slog.Any("loss", step(b))) // want `l.Info waits for step\(b\) in each`
	}
	for _, b := range data {
		l.Info("step", slog.Group("of", "loss", step(b), slog.Any("x", 1))) // want `l.Info waits`
		l.Debug("step", slog.Group("of", "loss", step(b)))
		l.Log(context.Background(), slog.LevelDebug, "step", "loss", step(b))
		l.LogAttrs(context.Background(), slog.LevelDebug-1, "step", slog.Any("loss", step(b)))
		l.Info("step", slog.Any("size", step(b).Dim(0)))
		_ = slog.Any("loss", step(b))
	}
	for _, b := range data {
		l.LogAttrs(context.Background(), slog.LevelWarn, "step", slog.Any("loss", step(b))) // want `l.LogAttrs waits`
	}
	for _, b := range data {
		t.Execute(os.Stdout, map[string]any{"loss": step(b)}) // want `t.Execute waits`
		t.Execute(os.Stdout, b.X.Dim(0))
	}
	for _, b := range data {
		t.ExecuteTemplate(os.Stdout, "loss", step(b)) // want `t.ExecuteTemplate waits`
	}
	for _, b := range data {
		note("loss", step(b)) // want `note waits for step\(b\) in each`
		note("size", step(b).Dim(0))
		kind("loss", step(b))
		debugNote(step(b))
		first(step(b), "loss")
		if b.X.Dim(0) > 100 {
			fail(step(b))
		}
	}
	for _, b := range data {
		reply(os.Stdout, map[string]any{"loss": step(b)}) // want `reply waits`
	}
	for _, b := range data {
		pair("loss", 1, step(b)) // want `pair waits`
	}
	for _, b := range data {
		pair("loss", step(b), 1) // want `pair waits`
	}
}

type rates struct {
	step, every int
	verbose     bool
}

func (r *rates) due() bool {
	if r.step == 0 {
		return true
	}
	return r.step%r.every == 0
}

func (r *rates) odd() bool {
	if r.every <= 0 {
		return true
	}
	return r.step > r.every
}

// seldom prints, in ways that are no pattern.
func seldom(data []Batch, r *rates, tick *time.Ticker) {
	for _, b := range data {
		loss := step(b)
		r.step++
		if r.due() {
			fmt.Println(loss)
		}
	}
	for _, b := range data {
		loss := step(b)
		if r.odd() {
			fmt.Println(loss) // want `AT004`
		}
	}
	begun, again := false, true
	for _, b := range data {
		loss := step(b)
		if !begun {
			fmt.Println("begins with", loss)
			begun = true
		}
	}
	for i, b := range data {
		loss := step(b)
		if again {
			fmt.Println(loss) // want `AT004`
			again = i > 10
		}
	}
	for range tick.C {
		fmt.Println(step(data[0]))
	}
	for {
		<-tick.C
		fmt.Println(step(data[0]))
	}
}

func numbers(data []Batch) (sum tensor.F64) {
	for _, b := range data {
		sum = sum.Add(step(b).F64())
		fmt.Println(sum) // want `fmt.Println waits for sum`
	}
	return sum
}
