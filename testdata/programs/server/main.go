// Command server answers questions over HTTP with a model that is being trained
// at the same time. Each request is a goroutine of its own; they share the newest
// frozen copy of the model, which costs nothing to make and never changes, so
// there is no lock and no pause when the next one takes its place. A client that
// hangs up is not waited for.
//
//	curl -d '[0.1, 0.2, 0.3, 0.4]' localhost:8080/predict
//
// With -small it serves its own clients for a moment, a third of which hang up,
// and checks every answer. Results go to standard output, addresses and times to standard
// error.
//
//	go run ./testdata/programs/server [-addr localhost:8080] [-small]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const features = 4

func main() {
	addr := flag.String("addr", "localhost:8080", "address to serve on")
	small := flag.Bool("small", false, "serve own clients for a moment")
	flag.Parse()
	if *small {
		*addr = "127.0.0.1:0"
	}

	tensor.Seed(1)
	s := newServer()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "serving on http://%v/predict\n", listener.Addr())
	web := &http.Server{Handler: s.handler()}
	if *small {
		go web.Serve(listener)
		check(s, "http://"+listener.Addr().String(), web)
		return
	}
	go func() {
		for {
			s.train()
		}
	}()
	log.Fatal(web.Serve(listener))
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

// train learns from a few batches and releases the next version, without waiting
// for anything to be computed.
func (s *server) train() *release {
	for range 10 {
		x := tensor.Randn(32, features)
		s.opt.Minimize(nn.L2Loss(s.net.Forward(x), x.MatMul(s.truth)))
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
	x, err := tensor.TryFrom(question, 1, features)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m := s.newest.Load()
	y, err := m.model.Forward(x).ItemContext(r.Context())
	if err != nil { // that of the request's context if the client is gone
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	json.NewEncoder(w).Encode(answer{m.version, y})
}
