// Command server answers questions over HTTP with a model that is being trained
// at the same time. Each request is a goroutine of its own; they share the newest
// frozen copy of the model, which costs nothing to make and never changes, so
// there is no lock and no pause when the next one takes its place.
//
// A request is a scope: when its client hangs up, nobody waits for the answer any more, and what
// was not begun for it is not computed. An interrupt ends the server when
// the requests that it has taken are answered.
//
//	curl -d '[0.1, 0.2, 0.3, 0.4]' localhost:8080/predict
//
// With -small it serves its own clients for a moment, a third of whose requests
// are given up, and checks every answer and that nothing is left. With -load it
// does so for as long as that says, and tells how many requests a second it
// has answered and how its memory has grown. Results go to standard output,
// addresses and times to standard error.
//
//	go run ./testdata/programs/server [-addr localhost:8080] [-small [-requests N]] [-load DURATION]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const features = 4

func main() {
	addr := flag.String("addr", "localhost:8080", "address to serve on")
	small := flag.Bool("small", false, "serve own clients for a moment, and check")
	requests := flag.Int("requests", 360, "with -small: how many")
	load := flag.Duration("load", 0, "serve own clients for so long, and measure")
	flag.Parse()
	if *small || *load > 0 {
		*addr = "127.0.0.1:0"
	}

	tensor.Seed(1)
	s := newServer()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "serving on http://%v/predict\n", listener.Addr())
	url := "http://" + listener.Addr().String()
	switch {
	case *small:
		web := &http.Server{Handler: s.handler()}
		go web.Serve(listener)
		check(s, url, web, *requests)
	case *load > 0:
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			defer stop()
			measure(s, url, *load)
		}()
		s.serve(ctx, listener)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		s.serve(ctx, listener)
		fmt.Println("interrupted")
	}
}

// A server is a model in training, and what it has learnt so far in use.
type server struct {
	net    nn.Module
	opt    *optim.Optimizer
	truth  *tensor.Tensor
	newest atomic.Pointer[release]
}

// A release is the model as it was after some training.
type release struct {
	version int
	model   nn.Module // frozen
}

// An answer is what a client gets.
type answer struct {
	Version    int     `json:"version"`
	Prediction float64 `json:"prediction"`
}

func newServer() *server {
	s := &server{
		net:   nn.Sequential(nn.Dense(16), nn.ReLU(), nn.Dense(1)),
		truth: tensor.From([]float32{1, -2, 3, -4}, features, 1),
	}
	s.net.Forward(tensor.Zeros(1, features)) // gives the weights their shapes
	s.opt = optim.SGD(s.net.Params(), 0.05)
	s.newest.Store(&release{0, nn.Frozen(s.net)})
	return s
}

// period is how often there is something new to learn from.
const period = 10 * time.Millisecond

// serve answers and trains until ctx ends, and then answers what was asked before.
func (s *server) serve(ctx context.Context, listener net.Listener) {
	web := &http.Server{Handler: s.handler()}
	var training sync.WaitGroup
	training.Go(func() {
		for tick := time.NewTicker(period); ; {
			select {
			case <-tick.C:
				s.train()
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	training.Go(func() {
		<-ctx.Done()
		if err := web.Shutdown(context.Background()); err != nil {
			log.Print(err)
		}
	})
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	training.Wait()
	if err := asyncrt.WaitAll(); err != nil {
		log.Fatalf("%+v", err)
	}
}

// train learns from a few batches and releases the next version, without waiting
// for anything to be computed.
func (s *server) train() *release {
	for range 10 {
		x := tensor.Randn(32, features)
		s.opt.Minimize(nn.MSELoss(s.net.Forward(x), x.MatMul(s.truth)))
	}
	next := &release{s.newest.Load().version + 1, nn.Frozen(s.net)}
	s.newest.Store(next)
	return next
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /predict", s.predict)
	return mux
}

func (s *server) predict(w http.ResponseWriter, r *http.Request) {
	var question []float32
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(question) != features {
		http.Error(w, fmt.Sprintf("%d numbers, want %d", len(question), features), http.StatusBadRequest)
		return
	}
	request := device.WithContext(r.Context(), device.Default())
	m := s.newest.Load()
	y, err := m.model.Forward(tensor.FromOn(request, question, 1, features)).ItemContext(r.Context())
	if err != nil { // that of the request's context if the client is gone
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	json.NewEncoder(w).Encode(answer{m.version, y})
}
