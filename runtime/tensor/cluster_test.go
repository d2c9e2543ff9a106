package tensor

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
)

// A Cluster is some machines with equal GPUs, as a model of how long sums and steps of training take on them, in
// seconds. Nothing is computed, so that it can have thousands of GPUs.
//
// The GPUs are those of the simulator, and what they do in one machine takes what package sim says. A message goes
// from GPU memory to host memory, over the wire, and to GPU memory again. The host begins to send when it sees that
// the first copy has finished. A machine sends one message after the other, at the speed of its network. Copies in host
// memory, and what the hosts compute, take no time.
type Cluster struct {
	GPU      sim.Options
	Machines int
	GPUs     int     // of a machine
	Network  float64 // bytes a second that a machine sends
	Message  float64 // from the end of sending until a message is there
	// Split has each GPU of a machine add up its own part of each sum, of all terms of the machine, which it is sent
	// first. So sums stop once at each machine. All terms are still added in the same order.
	Split bool
}

// A Layer is a dense layer of a model, and ReLU says whether such an activation follows. Rows is how many vectors each
// GPU gives it in a step. All is float32.
type Layer struct {
	In, Out, Rows float64
	ReLU          bool
}

// A schedule is what the GPUs and links of a cluster are busy with, in the order in which a program enqueues it.
type schedule struct {
	Cluster
	each                                int       // places of a machine
	parts                               float64   // what a sum is divided into within a place
	computes, links, uploads, downloads []float64 // by place: when what has been enqueued there ends
	networks                            []float64 // by machine
	moving                              []*journey
	ready                               []*journey // that are over, and whose parameters wait for their update
	beats                               int
}

// A journey is a reduction under way, and a traveller one of its sums.
type journey struct {
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
	terms     []float64 // by place, with Split: when the parts of its terms are where they are added
}

func (c Cluster) begin() *schedule {
	s := &schedule{Cluster: c, each: c.GPUs, parts: 1}
	if c.Split { // the GPUs of a machine do the same, so one place stands for them
		s.each, s.parts = 1, float64(c.GPUs)
	}
	n := s.each * c.Machines
	for _, queue := range []*[]float64{&s.computes, &s.links, &s.uploads, &s.downloads} {
		*queue = make([]float64, n)
	}
	s.networks = make([]float64, c.Machines)
	return s
}

func (s *schedule) places() int { return len(s.computes) }

// after has a queue do something that takes a time and begins at a time at the earliest. It returns the end.
func after(queue *float64, from, takes float64) float64 {
	*queue = max(*queue, from) + takes
	return *queue
}

// work is how long a command computes.
func (c Cluster) work(operations, bytes float64) float64 {
	return max(c.GPU.Launch.Seconds(), operations/c.GPU.Flops, bytes/c.GPU.Memory)
}

// copied is when bytes that are at a place from some time on are at the next one.
func (s *schedule) copied(place int, bytes, from float64) float64 {
	next, start := (place+1)%s.places(), s.GPU.Copy.Seconds()
	if place/s.each == next/s.each {
		return after(&s.links[place], from, start+bytes/s.GPU.Link)
	}
	onHost := after(&s.downloads[place], from, start+bytes/s.parts/s.GPU.Bandwidth) + s.GPU.Latency.Seconds()
	there := after(&s.networks[place/s.each], onHost, bytes/s.Network) + s.Message
	return after(&s.uploads[next], there, start+bytes/s.parts/s.GPU.Bandwidth)
}

// exchanged is when each GPU of a place has its part of bytes that all of them have from some time on, or all of them
// have the parts that each has.
func (s *schedule) exchanged(place int, bytes, from float64) float64 {
	if s.parts == 1 {
		return from
	}
	return after(&s.links[place], from, (s.parts-1)*(s.GPU.Copy.Seconds()+bytes/s.parts/s.GPU.Link))
}

// added is when a sum that has come to a place has the terms that are there.
func (s *schedule) added(place int, bytes, from float64, terms int) float64 {
	part := bytes / s.parts
	return after(&s.computes[place], from, float64(terms)*s.work(part/4, 3*part))
}

// newJourney begins a reduction of one term of each place, cut as a reduction is.
func (s *schedule) newJourney(bytes float64, params ...float64) {
	n := s.places()
	r := &reduction{size: int(bytes / 4), dtype: Float32, ring: make([]device.Device, n), terms: make([]*Tensor, n), each: s.each, to: -1}
	r.cutAll()
	j := &journey{params: params, bytes: bytes, whole: make([]float64, n)}
	for _, sum := range r.sums {
		t := &traveller{bytes: float64(sum.to-sum.from) * 4, at: sum.order[0], adds: n - 1, left: n - 1, beat: s.beats}
		if s.parts > 1 {
			t.terms = make([]float64, n)
		}
		for p := range t.terms {
			t.terms[p] = s.exchanged(p, t.bytes, s.computes[p])
		}
		t.whenReady = s.computes[t.at]
		if s.parts > 1 {
			t.whenReady = s.added(t.at, t.bytes, t.terms[t.at], int(s.parts)-1)
		}
		j.travellers = append(j.travellers, t)
	}
	if n == 1 {
		for _, t := range j.travellers {
			s.arrive(j, t)
		}
	}
	s.moving = append(s.moving, j)
}

// step moves t to the next place.
func (s *schedule) step(j *journey, t *traveller) {
	t.whenReady = s.copied(t.at, t.bytes, t.whenReady)
	t.at = (t.at + 1) % s.places()
	if t.adds > 0 {
		t.adds--
		if s.parts > 1 {
			t.whenReady = max(t.whenReady, t.terms[t.at])
		}
		t.whenReady = s.added(t.at, t.bytes, t.whenReady, int(s.parts))
	} else {
		t.left--
	}
	if t.adds == 0 {
		s.arrive(j, t)
	}
}

// arrive gives the GPUs at the place of t the sum, which is whole.
func (s *schedule) arrive(j *journey, t *traveller) {
	whole := s.exchanged(t.at, t.bytes, t.whenReady)
	j.whole[t.at] = max(j.whole[t.at], whole)
	if len(j.travellers) > 2 {
		after(&s.computes[t.at], whole, s.work(0, 2*t.bytes))
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
		if len(j.travellers) == 2 {
			for p := range s.computes {
				after(&s.computes[p], j.whole[p], s.work(0, 2*j.bytes))
			}
		}
		s.ready = append(s.ready, j)
		return true
	})
}

// update enqueues the first n updates that are ready.
func (s *schedule) update(n int) {
	for _, j := range s.ready[:n] {
		for p := range s.computes {
			after(&s.computes[p], j.whole[p], 0)
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
	s := c.begin()
	s.newJourney(bytes)
	for s.advance() {
	}
	return s.end()
}

// RegroupedTime is AllReduceTime of the usual sum in two levels, which adds up the terms of each machine first, and
// so has other bits: all GPUs of a machine get a part of its sum, the machines add these parts in a ring, and the GPUs
// give each other what they have got. No two of these steps overlap.
func (c Cluster) RegroupedTime(bytes float64) float64 {
	machines, gpus := float64(c.Machines), float64(c.GPUs)
	part := bytes / gpus
	inside := (gpus - 1) * (2*(c.GPU.Copy.Seconds()+part/c.GPU.Link) + c.work(part/4, 3*part))
	one := bytes / machines
	toHost := c.GPU.Copy.Seconds() + one/gpus/c.GPU.Bandwidth
	hop := 2*toHost + c.GPU.Latency.Seconds() + one/c.Network + c.Message
	return inside + (machines-1)*(2*hop+c.work(one/gpus/4, 3*one/gpus))
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
		s.computes[p] += s.work(operations, bytes)
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
				s.computes[p] += s.backward(l, i == 0)
			}
			if isLarge {
				s.beat(gpu)
			}
		}
		s.deliver()
		for _, param := range []float64{l.weights(), 4 * l.Out} {
			if param >= defaultBucket {
				s.newJourney(param, param)
				continue
			}
			small, bytes = append(small, param), bytes+param
			if bytes >= defaultBucket || i == 0 && param == 4*l.Out {
				s.all(0, 2*bytes)
				s.newJourney(bytes, small...)
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
