package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	clients  = 8
	releases = 50
)

// A reply is an answer to one question.
type reply struct {
	question []float32
	answer
}

// check lets clients ask while the server trains, shuts it down, compares each answer with
// what that version of the model has to say, and looks whether anything is left.
func check(s *server, url string, web *http.Server, requests int) {
	s.train()
	if _, err := ask(context.Background(), url, make([]float32, features)); err != nil { // all that serves is there now
		log.Fatal(err)
	}
	start, goroutines, memory := time.Now(), runtime.NumGoroutine(), inUse()
	first := s.newest.Load()
	versions := map[int]*release{first.version: first}
	var wg sync.WaitGroup
	var all [clients]client
	for i := range all {
		wg.Go(func() {
			for k := i; k < requests; k += clients {
				all[i].ask(url, k)
			}
		})
	}
	for range releases {
		next := s.train()
		versions[next.version] = next
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections() // Shutdown waits for seconds for those that nothing was asked on
	if err := web.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}

	answered, gaveUp, wrong := 0, 0, 0
	for _, c := range all {
		answered += len(c.replies)
		gaveUp += c.gaveUp
		for _, r := range c.replies {
			m := versions[r.Version].model
			same := m.Forward(tensor.From(r.question, 1, features)).Item() == r.Prediction
			right := r.isRight(layersOf(m))
			if !same || !right {
				wrong++
			}
		}
	}
	fmt.Printf("%d clients asked %d times, %d answers are missing, %d are wrong\n", clients, requests, requests-answered-gaveUp, wrong)
	x := tensor.Randn(256, features)
	learnt := func(r *release) float64 { return r.model.Forward(x).Sub(x.MatMul(s.truth)).Norm().Item() }
	fmt.Printf("%d releases, the last one better than the first: %v\n", releases, learnt(s.newest.Load()) < learnt(first)/2)
	fmt.Println("failed operations:", asyncrt.WaitAll())
	clear(versions)
	first, x = nil, nil
	isBack := func() bool { return runtime.NumGoroutine() <= goroutines && inUse() <= memory }
	for deadline := time.Now().Add(10 * time.Second); !isBack() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // connections are closed behind our back
	}
	fmt.Println("no more goroutines than before:", runtime.NumGoroutine() <= goroutines)
	fmt.Println("no more memory of the device in use:", inUse() <= memory)
	fmt.Fprintf(os.Stderr, "%d answers, %d were given up, in %v\n", answered, gaveUp, time.Since(start).Round(time.Millisecond))
}

// inUse is how many bytes of devices something refers to.
func inUse() (bytes int64) {
	device.Collect()
	for _, d := range asyncrt.Stats().Memory {
		bytes += d.Live
	}
	return bytes
}

// A layer is the weights of one as plain numbers: out[j] is bias[j] + sum(in[i]*weight[i*len(bias)+j]).
type layer struct{ weight, bias []float32 }

// layersOf reads the weights of a model.
func layersOf(m nn.Module) (layers []layer) {
	p := m.Params()
	for ; len(p) > 0; p = p[2:] {
		layers = append(layers, layer{p[0].Value().Float32s(), p[1].Value().Float32s()})
	}
	return layers
}

// isRight reports whether the answer is, up to rounding, what layers with ReLUs in between compute.
func (r reply) isRight(layers []layer) bool {
	in, size := make([]float64, features), 1.
	for i, q := range r.question {
		in[i] = float64(q)
	}
	for n, l := range layers {
		out := make([]float64, len(l.bias))
		for j, b := range l.bias {
			out[j] = float64(b)
			for i, x := range in {
				out[j] += x * float64(l.weight[i*len(out)+j])
				size += math.Abs(x * float64(l.weight[i*len(out)+j]))
			}
			if n < len(layers)-1 {
				out[j] = max(out[j], 0)
			}
		}
		in = out
	}
	return math.Abs(in[0]-r.Prediction) < 1e-6*size
}

// A client asks one question after the other.
type client struct {
	replies []reply
	gaveUp  int
	errs    int
	took    time.Duration // the last answer
}

// ask asks question k, and, if that can be divided by three, gives up after some part of the time that the last answer took.
func (c *client) ask(url string, k int) {
	question := []float32{float32(k % 11), float32(k) / 16, 1, float32(k%7) - 3}
	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	if k%3 == 0 {
		time.AfterFunc(c.took*time.Duration(k/3%10)/10, giveUp)
	}
	start := time.Now()
	a, err := ask(ctx, url, question)
	switch {
	case err == nil:
		c.took = time.Since(start)
		c.replies = append(c.replies, reply{question, a})
	case k%3 == 0 && errors.Is(err, context.Canceled):
		c.gaveUp++
	default:
		c.errs++
		log.Print(err)
	}
}

func ask(ctx context.Context, url string, question []float32) (a answer, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", url+"/predict", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return a, fmt.Errorf("status %s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return a, json.NewDecoder(resp.Body).Decode(&a)
}
