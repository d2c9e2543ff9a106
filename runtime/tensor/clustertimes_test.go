package tensor_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/internal/turns"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var machines = flag.String("machines", "few", "few: compare the guide's tables for up to 64 machines; all: for 1024; update: write them")

// On one machine, a Cluster has the times of the simulator.
func TestClusterIsSimulated(t *testing.T) {
	o := sim.VirtualDefaults()
	o.Host = 0
	o.Flops, o.Memory = 1e12, 200e9 // so that few samples take as long as the gradients' way
	const rows = 16
	for _, n := range []int{2, 4, 8} {
		if n != 4 && (testing.Short() || !turns.Has(t, fmt.Sprint(n, " GPUs"))) {
			continue
		}
		var devs []device.Device
		for i := range n {
			devs = append(devs, device.Wrap(fmt.Sprintf("sim:%d", i), device.KindSimulated, sim.New(o)))
		}
		c := tensor.Cluster{GPU: o, Machines: 1, GPUs: n}
		for _, bytes := range []int{1 << 10, 1 << 20, 16 << 20} { // one sum, two, and two of several pieces
			checkTime(t, fmt.Sprintf("%d GPUs, all-reduce of %d bytes", n, bytes), simulatedAllReduce(t, devs, bytes/4), c.AllReduceTime(float64(bytes)))
		}
		for _, widths := range [][]int{
			{64, 1024, 1024, 1},
			{512, 512, 512, 512, 512, 512, 1}, // sums go on between layers
		} {
			checkTime(t, fmt.Sprintf("%d GPUs, step of %d", n, widths), simulatedStep(t, devs, rows, widths), c.StepTime(perceptron(rows, widths...)))
		}
	}
}

// Between machines, a Cluster has the times of one sum that are counted by hand.
func TestClusterMessages(t *testing.T) {
	const us, bytes = 1e-6, 1024.0
	o := sim.VirtualDefaults()
	c := tensor.Cluster{GPU: o, Machines: 2, GPUs: 1, Network: 1e9, Message: 7 * us}
	const add = 3 * bytes / 100e9
	hop := func(ofGPU, ofMachine float64) float64 { // down, seen, sent, up
		return 20*us + ofGPU/16e9 + 50*us + ofMachine/1e9 + 7*us + 20*us + ofGPU/16e9
	}
	four := func(sums tensor.Sums) float64 { // GPUs
		c := c
		c.GPUs, c.Host, c.Sums = 2, 100e9, sums
		return c.AllReduceTime(bytes)
	}
	exchange := 20*us + bytes/2/50e9
	down, sent := 20*us+bytes/16e9, bytes/1e9+7*us // or up
	// Each of two machines begins with one half, has the other to add when that comes, and gets back the first, which
	// is copied up last.
	const large = 32 << 10
	half, wire := 20*us+large/2/16e9, large/2/1e9+7*us
	halves := half + 50*us + 2*wire + half + 5*us
	for what, times := range map[string][2]float64{
		"a ring of two machines":                   {c.AllReduceTime(bytes), down + 50*us + 2*sent + down},
		"a ring of two machines, in halves":        {c.AllReduceTime(large), halves},
		"two machines of two GPUs each, a ring":    {four(tensor.Ring), down + 50*us + add + sent + 2*add + sent + down},
		"two machines of two GPUs each, regrouped": {four(tensor.Regrouped), exchange + 5*us + hop(bytes/4, bytes/2) + 5*us + hop(bytes/4, bytes/2) + exchange},
		"two machines of two GPUs each, paired":    {four(tensor.Paired), exchange + 5*us + hop(bytes/4, bytes/2) + 5*us + hop(bytes/4, bytes/2) + exchange},
	} {
		if got, want := times[0], times[1]; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %.3f µs, want %.3f", what, got/us, want/us)
		}
	}
}

// finish waits for all devices. It returns the time by their clock, in seconds.
func finish(t *testing.T, devs []device.Device) float64 {
	for _, d := range devs {
		if err := asyncrt.Synchronize(d); err != nil {
			t.Fatal(err)
		}
	}
	return sim.Now().Seconds()
}

// simulatedAllReduce returns the seconds that an all-reduce of one term on each device takes by the simulator.
func simulatedAllReduce(t *testing.T, devs []device.Device, size int) float64 {
	var terms []*tensor.Tensor
	for _, d := range devs {
		terms = append(terms, tensor.On(d).Ones(size))
	}
	begin := finish(t, devs)
	sums := tensor.AllReduce(terms...)
	took := finish(t, devs) - begin
	tensor.Dead(append(terms, sums...)...)
	return took - sim.VirtualDefaults().Latency.Seconds() // of the last command, until the program sees it
}

// simulatedStep returns the seconds that a step of training takes by the simulator, with some rows on each device.
func simulatedStep(t *testing.T, devs []device.Device, rows int, widths []int) float64 {
	var layers []nn.Module
	for _, width := range widths[1:] {
		layers = append(layers, nn.Dense(width), nn.ReLU())
	}
	net := nn.DataParallel(nn.Sequential(layers[:len(layers)-1]...), nn.Parallel{Devices: devs, Shards: len(devs)})
	opt := optim.SGD(net.Params(), 0.01)
	x, y := tensor.On(device.CPU()).Ones(rows*len(devs), widths[0]), tensor.On(device.CPU()).Zeros(rows*len(devs), 1)
	run := func(steps int) float64 {
		begin := finish(t, devs)
		for range steps {
			opt.Minimize(net.Loss(nn.MSELoss, x, y))
		}
		return finish(t, devs) - begin
	}
	run(1)                       // weights are drawn and copied
	return (run(4) - run(2)) / 2 // without what a run takes to begin and to end
}

// perceptron lists the layers of a perceptron of the given widths.
func perceptron(rows int, widths ...int) (layers []tensor.Layer) {
	for i, out := range widths[1:] {
		layers = append(layers, tensor.Layer{In: float64(widths[i]), Out: float64(out), Rows: float64(rows), ReLU: i < len(widths)-2})
	}
	return layers
}

// transformer lists the dense layers of 24 blocks 2048 wide, and of 50304 words: 1.3 billion weights.
func transformer(rows int) (layers []tensor.Layer) {
	dense := func(in, out int) { layers = append(layers, perceptron(rows, in, out)...) }
	for range 24 {
		dense(2048, 3*2048)
		dense(2048, 2048)
		dense(2048, 4*2048)
		dense(4*2048, 2048)
	}
	dense(2048, 50304)
	return layers
}

// The tables of the guide are what the model says.
func TestClusterTables(t *testing.T) {
	const file, begin, end = "../../docs/guide/machines.md", "<!-- begin: go test ./runtime/tensor -run ClusterTables -machines update -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, isEnded := strings.Cut(rest, end)
	if !ok || !isEnded {
		t.Fatalf("%s has no tables", file)
	}
	most := 1024
	if *machines == "few" {
		most = 64
	}
	lines := clusterTables(most)
	if *machines == "update" {
		if err := os.WriteFile(file, []byte(before+begin+strings.Join(lines, "\n")+"\n"+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, line := range lines { // in this order; rows of more machines may be between them
		_, was, ok = strings.Cut("\n"+was, "\n"+line+"\n")
		if ok {
			continue
		}
		t.Fatalf("%s: run go test ./runtime/tensor -run ClusterTables -machines update\nthere is no line\n%s", file, line)
	}
}

// fastest lists times, the least one in bold.
func fastest(times []float64) string {
	var list []string
	for _, t := range times {
		text := inMs(t)
		if t == slices.Min(times) {
			text = "**" + text + "**"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// inMs is a time with two or three digits.
func inMs(seconds float64) string {
	if seconds < 10e-3 {
		return fmt.Sprintf("%.2f", 1e3*seconds)
	}
	return fmt.Sprintf("%.0f", 1e3*seconds)
}

// clusterTables returns the lines of the guide's tables, for so many machines at most.
func clusterTables(most int) (lines []string) {
	gpu := sim.VirtualDefaults()
	gpu.Link = 25e9
	cluster := func(machines, gpus int, gbits float64) tensor.Cluster {
		return tensor.Cluster{GPU: gpu, Machines: machines, GPUs: gpus, Network: gbits / 8 * 1e9, Message: 5e-6, Host: 200e9}
	}
	efficiency := func(c tensor.Cluster, layers []tensor.Layer) float64 {
		alone := c
		alone.Machines, alone.GPUs, alone.Sums = 1, 1, tensor.Ring
		return 100 * alone.StepTime(layers) / c.StepTime(layers)
	}
	by := func(c tensor.Cluster, sums tensor.Sums) tensor.Cluster {
		c.Sums = sums
		return c
	}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }

	mlp, large := perceptron(1024, 512, 2048, 512, 1), transformer(8192)
	counts := []int{1, 2, 4, 16, 64, 256, 1024}
	counts = counts[:slices.Index(counts, most)+1]
	efficiencies := func(all ...tensor.Sums) {
		add("| machines of 8 GPUs | mlp, 25 Gbit/s | 100 | 400 | 1.3 billion weights, 25 Gbit/s | 100 | 400 |")
		add("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
		for _, n := range counts {
			row := fmt.Sprintf("| %d |", n)
			for _, layers := range [][]tensor.Layer{mlp, large} {
				for _, speed := range []float64{25, 100, 400} {
					var list []string
					for _, sums := range all {
						list = append(list, fmt.Sprintf("%.1f", efficiency(by(cluster(n, 8, speed), sums), layers)))
					}
					row += " " + strings.Join(list, ", ") + " |"
				}
			}
			add("%s", row)
		}
	}
	efficiencies(tensor.Ring)
	add("\nThe same for regrouped and paired sums:\n")
	efficiencies(tensor.Regrouped, tensor.Paired)

	add("\nThe same for mlp with one GPU in each machine and 200 Gbit/s, which is 25 GB/s, between them:\n")
	add("| samples of a GPU | two machines | four | two, if copies and messages began at once | four |")
	add("| ---: | ---: | ---: | ---: | ---: |")
	for _, rows := range []int{1024, 8192, 65536} {
		row := fmt.Sprintf("| %d |", rows)
		for _, isFree := range []bool{false, true} {
			for _, n := range []int{2, 4} {
				c := cluster(n, 1, 200)
				if isFree {
					c.GPU.Copy, c.GPU.Latency, c.Message, c.GPU.Bandwidth = 0, 0, 0, math.Inf(1)
				}
				row += fmt.Sprintf(" %.1f |", efficiency(c, perceptron(rows, 512, 2048, 512, 1)))
			}
		}
		add("%s", row)
	}

	add("\nMilliseconds of one sum over all GPUs, with 100 Gbit/s: ring, regrouped, paired. The fastest one is in bold:\n")
	add("| machines of 8 GPUs | 64 KiB | 4 MiB | 64 MiB | 1 GiB |")
	add("| ---: | ---: | ---: | ---: | ---: |")
	for _, n := range counts {
		row := fmt.Sprintf("| %d |", n)
		for _, bytes := range []float64{64 << 10, 4 << 20, 64 << 20, 1 << 30} {
			var times []float64
			for _, sums := range []tensor.Sums{tensor.Ring, tensor.Regrouped, tensor.Paired} {
				times = append(times, by(cluster(n, 8, 100), sums).AllReduceTime(bytes))
			}
			row += " " + fastest(times) + " |"
		}
		add("%s", row)
	}
	return lines
}
