package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"
)

// sampling is how often a measurement looks at the memory.
const sampling = 250 * time.Millisecond

// measure lets clients ask as fast as they can for so long, and prints what came of it.
func measure(s *server, url string, load time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), load)
	defer stop()
	var wg sync.WaitGroup
	var all [clients]judge
	start := time.Now()
	for i := range all {
		wg.Go(func() {
			for k := i; ctx.Err() == nil; k += clients {
				all[i].ask(s, url, k)
			}
		})
	}
	var at, resident []float64 // minutes and bytes
	for tick := time.NewTicker(sampling); ctx.Err() == nil; {
		select {
		case <-tick.C:
			at = append(at, time.Since(start).Minutes())
			resident = append(resident, float64(residentBytes()))
		case <-ctx.Done():
			tick.Stop()
		}
	}
	took := time.Since(start)
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()

	var sum judge
	for _, j := range all {
		sum.answered += j.answered
		sum.gaveUp += j.gaveUp
		sum.errs += j.errs
		sum.checked += j.checked
		sum.wrong += j.wrong
	}
	fmt.Printf("%d clients, %v: %d answers, %.0f a second; %d were given up\n",
		clients, took.Round(time.Second), sum.answered, float64(sum.answered)/took.Seconds(), sum.gaveUp)
	fmt.Printf("%d answers were checked, %d of them are wrong; %d requests failed; %d releases\n",
		sum.checked, sum.wrong, sum.errs, s.newest.Load().version)
	warm := len(at) / 10 // the first tenth is for growing to the size that the work needs
	at, resident = at[warm:], resident[warm:]
	if len(at) < 2 {
		log.Print("too short to see how memory grows")
		return
	}
	_, slope := stat.LinearRegression(at, resident, nil, false)
	fmt.Printf("memory: %.1f MB at the beginning, %.1f MB at the end, slope %+.0f bytes a minute by least squares over %.1f minutes\n",
		resident[0]/1e6, resident[len(resident)-1]/1e6, slope, at[len(at)-1]-at[0])
	if sum.wrong > 0 || sum.errs > 0 {
		os.Exit(1)
	}
}

// A judge is a client that compares answers with what the model has to say. It does so where it knows
// the model: that was the newest one just before it asked, or just after.
type judge struct {
	client
	answered, checked, wrong int
	version                  int
	layers                   []layer // of that version; nil: of none
}

// ask asks question k and checks the answer.
func (j *judge) ask(s *server, url string, k int) {
	before := s.newest.Load()
	j.client.ask(url, k)
	after := s.newest.Load()
	for _, r := range j.replies {
		j.answered++
		for _, m := range []*release{before, after} {
			if m.version != r.Version {
				continue
			}
			if j.layers == nil || j.version != m.version {
				j.version, j.layers = m.version, layersOf(m.model)
			}
			j.checked++
			if !r.isRight(j.layers) {
				j.wrong++
			}
			break
		}
	}
	j.replies = j.replies[:0]
}
