package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

const (
	clients  = 8
	requests = 45 // of each client
	releases = 50
)

// A reply is an answer to one question.
type reply struct {
	question []float32
	answer
}

// check lets clients ask while the server trains, shuts it down, and compares each answer with
// what that version of the model says now.
func check(s *server, url string, web *http.Server) {
	if _, err := ask(context.Background(), url, make([]float32, features)); err != nil { // all that serves is there now
		log.Fatal(err)
	}
	start, goroutines := time.Now(), runtime.NumGoroutine()
	versions := []*release{s.newest.Load()}
	var wg sync.WaitGroup
	var all [clients]client
	for i := range all {
		wg.Go(func() { all[i].run(url, i) })
	}
	for range releases {
		versions = append(versions, s.train())
	}
	wg.Wait()
	if err := web.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()

	answered, gaveUp, wrong := 0, 0, 0
	for _, c := range all {
		answered += len(c.replies)
		gaveUp += c.gaveUp
		for _, r := range c.replies {
			if versions[r.Version].model.Forward(tensor.From(r.question, 1, features)).Item() != r.Prediction {
				wrong++
			}
		}
	}
	fmt.Printf("%d clients asked %d times each, %d answers are missing, %d are wrong\n",
		clients, requests, clients*requests-answered-gaveUp, wrong)
	x := tensor.Randn(256, features)
	learnt := func(r *release) float64 { return r.model.Forward(x).Sub(x.MatMul(s.truth)).Norm().Item() }
	fmt.Printf("%d releases, the last one better than the first: %v\n", releases, learnt(versions[releases]) < learnt(versions[0])/2)
	fmt.Println("failed operations:", asyncrt.WaitAll())
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // connections are closed behind our back
	}
	fmt.Println("no more goroutines than before:", runtime.NumGoroutine() <= goroutines)
	fmt.Fprintf(os.Stderr, "%d answers, %d clients had hung up, in %v\n", answered, gaveUp, time.Since(start).Round(time.Millisecond))
}

// A client asks one question after the other, and hangs up after every third.
type client struct {
	replies []reply
	gaveUp  int
}

func (c *client) run(url string, id int) {
	for i := range requests {
		question := []float32{float32(id), float32(i), 1, float32(i % 7)}
		ctx, hangUp := context.WithCancel(context.Background())
		if i%3 == 2 {
			time.AfterFunc(time.Duration(i)*20*time.Microsecond, hangUp)
		}
		a, err := ask(ctx, url, question)
		switch {
		case err == nil:
			c.replies = append(c.replies, reply{question, a})
		case i%3 == 2 && errors.Is(err, context.Canceled):
			c.gaveUp++
		default:
			log.Print(err)
		}
		hangUp()
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
		return a, fmt.Errorf("status %s", resp.Status)
	}
	return a, json.NewDecoder(resp.Body).Decode(&a)
}
