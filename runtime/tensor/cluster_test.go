package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
)

// A Cluster is some machines with equal GPUs, as a model of how long sums and steps of training take on them, in
// seconds. Nothing is computed, so that it can have thousands of GPUs.
//
// The GPUs are those of the simulator, and what they do in one machine takes what package sim says. Over several
// machines, hosts add, and GPUs get the results alone. The host of a machine begins to send when it sees that the copy
// of a term has finished, and all that the GPU was handed over before. It sends one message after the other, at the
// speed of its network. A GPU is handed over its work in order: what is enqueued behind the copy of a result waits
// until that has come, too. Copies in host memory take no time.
type Cluster struct {
	GPU      sim.Options
	Machines int
	GPUs     int     // of a machine
	Network  float64 // bytes a second that a machine sends
	Message  float64 // from the end of sending until a message is there
	Host     float64 // bytes a second that the additions of a host read and write; 0: they take no time
	Sums     Sums
}

// Sums says how terms come together.
type Sums uint8

const (
	// Ring is what AllReduceOver does.
	Ring Sums = iota
	// Regrouped is the usual sum in two levels, which adds up the terms of each machine first: all GPUs of a machine
	// get a part of its sum, the machines add these parts in a ring, and the GPUs give each other what they have got.
	Regrouped
	// Paired is a tree: two neighbours add up their terms, then pairs of pairs, and so on. Each of two has half of the
	// elements from then on, and they give each other their halves in the end (Thakur et al. 2005: recursive halving
	// and doubling). The numbers of GPUs and of machines are powers of two.
	Paired
)

// A Layer is a dense layer of a model, and ReLU says whether such an activation follows. Rows is how many vectors each
// GPU gives it in a step. All is float32.
type Layer struct {
	In, Out, Rows float64
	ReLU          bool
}

// A schedule is what the GPUs and links of a cluster are busy with, in the order in which a program enqueues it.
type schedule struct {
	Cluster
	each                                int       // places of a machine: its GPUs, or one that stands for all of them
	computes, links, uploads, downloads []float64 // by place: when what has been enqueued there ends
	ended                               []float64 // by place: when all of it has
	issued                              []float64 // by place: when the last of it can be handed over to the GPU
	networks, hosts                     []float64 // by machine
	onHosts                             bool      // sums travel over the hosts
	moving                              []*journey
	ready                               []*journey // that are over, and whose parameters wait for their update
	beats                               int
}

// A journey is a reduction under way, and a traveller one of its sums.
type journey struct {
	*reduction
	params     []float64 // their bytes; none outside of a step of training
	bytes      float64
	travellers []*traveller
	whole      []float64 // by place: when all sums have come to it
}

type traveller struct {
	bytes     float64
	at, adds  int     // the place that it has come to, and how many terms are missing
	left      int     // how many places it has not come to since it was whole
	whenReady float64 // when it may leave
	beat      int
	terms     []float64 // by place, on hosts: when its terms are there
	arrivals  []float64 // by place, on hosts: when it has come there, and is whole
}

func (c Cluster) begin() *schedule {
	s := &schedule{Cluster: c, each: c.GPUs, onHosts: c.Sums == Ring && c.Machines > 1}
	n := c.GPUs
	switch {
	case c.inSteps() != nil: // all GPUs do the same
		s.each, n = 1, 1
	case s.onHosts: // those of a machine do
		s.each, n = 1, c.Machines
	}
	for _, queue := range []*[]float64{&s.computes, &s.links, &s.uploads, &s.downloads, &s.ended, &s.issued} {
		*queue = make([]float64, n)
	}
	s.networks, s.hosts = make([]float64, c.Machines), make([]float64, c.Machines)
	return s
}

func (s *schedule) places() int { return len(s.computes) }

// after has a queue do something that takes a time and begins at a time at the earliest. It returns the end.
func after(queue *float64, from, takes float64) float64 {
	*queue = max(*queue, from) + takes
	return *queue
}

// run is after for a queue of a place.
func (s *schedule) run(queue []float64, place int, from, takes float64) float64 {
	end := after(&queue[place], max(from, s.issued[place]), takes)
	s.ended[place] = max(s.ended[place], end)
	return end
}

// work is how long a command computes.
func (c Cluster) work(operations, bytes float64) float64 {
	return max(c.GPU.Launch.Seconds(), operations/c.GPU.Flops, bytes/c.GPU.Memory)
}

// copied is when bytes that are at a place from some time on are at the next one.
func (s *schedule) copied(place int, bytes, from float64) float64 {
	if s.onHosts {
		return after(&s.networks[place], from, bytes/s.Network) + s.Message
	}
	return s.run(s.links, place, from, s.GPU.Copy.Seconds()+bytes/s.GPU.Link)
}

// downloaded is when the host sees that it has bytes of a place.
func (s *schedule) downloaded(place int, bytes, from float64) float64 {
	s.run(s.downloads, place, from, s.GPU.Copy.Seconds()+bytes/s.GPU.Bandwidth)
	return s.ended[place] + s.GPU.Latency.Seconds()
}

// uploaded is when bytes of a host are at a place.
func (s *schedule) uploaded(place int, bytes, from float64) float64 {
	s.issued[place] = max(s.issued[place], from)
	return s.run(s.uploads, place, from, s.GPU.Copy.Seconds()+bytes/s.GPU.Bandwidth)
}

// added is when a sum that has come to a place has some terms that are there.
func (s *schedule) added(place int, bytes, from float64, terms int) float64 {
	switch {
	case !s.onHosts:
		return s.run(s.computes, place, from, float64(terms)*s.work(bytes/4, 3*bytes))
	case s.Host == 0:
		return from
	}
	return after(&s.hosts[place], from, float64(terms)*3*bytes/s.Host)
}

// newJourney begins a reduction of one term of each place, cut as a reduction is. from is when places have their terms.
func (s *schedule) newJourney(bytes float64, from []float64, params ...float64) {
	if takes := s.inSteps(); takes != nil { // one sum after the other, while GPUs compute
		whole := after(&s.links[0], from[0], takes(bytes))
		s.all(bytes/4, 3*bytes)
		s.ready = append(s.ready, &journey{params: params, bytes: bytes, whole: []float64{whole}})
		return
	}
	n := s.places()
	r := &reduction{size: int(bytes / 4), dtype: Float32, ring: make([]device.Device, n), terms: make([]*Tensor, n), each: s.each, to: -1}
	for p := range n {
		r.places = append(r.places, p)
	}
	r.onHosts = s.onHosts
	r.cutAll()
	j := &journey{params: params, bytes: bytes, whole: make([]float64, n), reduction: r}
	for _, sum := range r.sums {
		t := &traveller{bytes: float64(sum.to-sum.from) * 4, at: sum.order[0], adds: n - 1, left: n - 1, beat: s.beats}
		if s.onHosts {
			t.terms, t.arrivals = make([]float64, n), make([]float64, n)
		}
		t.whenReady = from[t.at]
		j.travellers = append(j.travellers, t)
	}
	if s.onHosts {
		for p := range n {
			for _, t := range j.inOrder(p, 0) {
				t.terms[p] = s.downloaded(p, t.bytes, from[p])
			}
		}
		for _, t := range j.travellers {
			t.whenReady = s.added(t.at, t.bytes, t.terms[t.at], s.GPUs-1)
		}
	}
	s.moving = append(s.moving, j)
}

// inOrder lists the sums in the order in which a place copies them, see reduction.
func (j *journey) inOrder(place, from int) (list []*traveller) {
	j.here = place
	for _, sum := range j.reduction.inOrder(from) {
		list = append(list, j.travellers[slices.Index(j.sums, sum)])
	}
	return list
}

// step moves t to the next place.
func (s *schedule) step(j *journey, t *traveller) {
	t.whenReady = s.copied(t.at, t.bytes, t.whenReady)
	t.at = (t.at + 1) % s.places()
	if t.adds > 0 {
		t.adds--
		terms := 1
		if s.onHosts {
			t.whenReady, terms = max(t.whenReady, t.terms[t.at]), s.GPUs
		}
		t.whenReady = s.added(t.at, t.bytes, t.whenReady, terms)
	} else {
		t.left--
	}
	if t.adds == 0 {
		s.arrive(j, t)
	}
}

// arrive gives the GPUs at the place of t the sum, which is whole.
func (s *schedule) arrive(j *journey, t *traveller) {
	if s.onHosts {
		t.arrivals[t.at] = t.whenReady
		return
	}
	j.whole[t.at] = max(j.whole[t.at], t.whenReady)
	if len(j.travellers) > 2 {
		s.run(s.computes, t.at, t.whenReady, s.work(0, 2*t.bytes))
	}
}

// advance moves all sums by a place, and updates some parameters. It reports whether something is under way.
func (s *schedule) advance() bool {
	steps := 0
	for _, j := range s.moving {
		for _, t := range j.travellers {
			steps = max(steps, t.adds+t.left)
		}
	}
	if steps == 0 {
		s.update(len(s.ready))
		return false
	}
	s.update((len(s.ready) + steps) / (steps + 1))
	for _, j := range s.moving {
		for _, t := range j.travellers {
			if t.adds+t.left > 0 {
				s.step(j, t)
			}
		}
	}
	s.deliver()
	return true
}

// deliver ends the reductions whose sums have come to all places.
func (s *schedule) deliver() {
	s.moving = slices.DeleteFunc(s.moving, func(j *journey) bool {
		for _, t := range j.travellers {
			if t.adds+t.left > 0 {
				return false
			}
		}
		s.ready = append(s.ready, j)
		s.join(j)
		return true
	})
}

// join puts the results of j together on all GPUs.
func (s *schedule) join(j *journey) {
	for p := range s.computes {
		if s.onHosts {
			for _, t := range j.inOrder(p, 1) {
				j.whole[p] = max(j.whole[p], s.uploaded(p, t.bytes, t.arrivals[p]))
			}
		}
		if len(j.travellers) == 2 || s.onHosts && len(j.travellers) > 1 {
			s.run(s.computes, p, j.whole[p], s.work(0, 2*j.bytes))
		}
	}
}

// update enqueues the first n updates that are ready.
func (s *schedule) update(n int) {
	for _, j := range s.ready[:n] {
		for p := range s.computes {
			s.run(s.computes, p, j.whole[p], 0)
		}
		for _, bytes := range j.params {
			s.all(0, 3*bytes)
		}
	}
	s.ready = s.ready[n:]
}

// beat moves the sums whose next place is the given one of some machine.
func (s *schedule) beat(gpu int) {
	for _, j := range s.moving {
		for _, t := range j.travellers {
			if t.adds+t.left > 0 && t.beat < s.beats && (t.at+1)%s.each == gpu {
				t.beat = s.beats
				s.step(j, t)
			}
		}
	}
}

// end is when all is done.
func (s *schedule) end() float64 {
	return max(slices.Max(s.computes), slices.Max(s.uploads), slices.Max(s.links))
}

// AllReduceTime is how long an AllReduceOver of one term of each GPU takes, of some bytes of float32.
func (c Cluster) AllReduceTime(bytes float64) float64 {
	if takes := c.inSteps(); takes != nil {
		return takes(bytes)
	}
	s := c.begin()
	s.newJourney(bytes, s.computes)
	for s.advance() {
	}
	return s.end()
}

// StepTime is how long a step of nn.DataParallel takes, with one shard for each GPU. It is the second step: the GPUs do
// not begin it at the same time.
func (c Cluster) StepTime(layers []Layer) float64 {
	s := c.begin()
	s.trainingStep(layers)
	first := s.end()
	s.trainingStep(layers)
	return s.end() - first
}

// all has each GPU compute something.
func (s *schedule) all(operations, bytes float64) {
	for p := range s.computes {
		s.run(s.computes, p, 0, s.work(operations, bytes))
	}
}

// trainingStep enqueues a step: what nn, optim and this package enqueue, in their order. Only large weights count for
// the beats of a Reducer.
func (s *schedule) trainingStep(layers []Layer) {
	for _, l := range layers {
		s.all(2*l.Rows*l.In*l.Out, l.product())
		if l.ReLU {
			s.all(0, 8*l.Rows*l.Out)
		}
	}
	for range 4 { // the loss and its gradient, of few numbers
		s.all(0, 0)
	}
	s.beats = 0
	var small []float64 // gradients that wait to travel together
	bytes := 0.0        // of them
	for i, l := range slices.Backward(layers) {
		isLarge := l.weights() >= defaultBucket
		if isLarge {
			s.beats++
		}
		for gpu := range s.each {
			for p := gpu; p < s.places(); p += s.each {
				s.run(s.computes, p, 0, s.backward(l, i == 0))
			}
			if isLarge {
				s.beat(gpu)
			}
		}
		from := slices.Clone(s.computes)
		s.deliver()
		for _, param := range []float64{l.weights(), 4 * l.Out} {
			if param >= defaultBucket {
				s.newJourney(param, from, param)
				continue
			}
			small, bytes = append(small, param), bytes+param
			if bytes >= defaultBucket || i == 0 && param == 4*l.Out {
				s.all(0, 2*bytes)
				s.newJourney(bytes, s.computes, small...)
				small, bytes = nil, 0
			}
		}
	}
	for s.advance() {
	}
}

func (l Layer) weights() float64 { return 4 * l.In * l.Out }

// product is the bytes that a product of a layer reads and writes, forward or backward.
func (l Layer) product() float64 { return 4*l.Rows*(l.In+l.Out) + l.weights() }

// backward is how long the gradients of a layer take to compute.
func (c Cluster) backward(l Layer, isFirst bool) float64 {
	product := c.work(2*l.Rows*l.In*l.Out, l.product())
	takes := product + c.work(l.Rows*l.Out, 4*l.Rows*l.Out) // of the weights, and of the vector
	if !isFirst {
		takes += product
	}
	if l.ReLU {
		takes += c.work(0, 12*l.Rows*l.Out)
	}
	return takes
}
