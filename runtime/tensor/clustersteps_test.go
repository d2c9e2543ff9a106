package tensor

// Sums of a Cluster in steps that all GPUs take together. No two steps of a sum overlap.

// inSteps returns how long a sum of some bytes takes, or nil with Ring, where each sum moves by itself.
func (c Cluster) inSteps() func(bytes float64) float64 {
	switch c.Sums {
	case Regrouped:
		return c.regrouped
	case Paired:
		return c.paired
	}
	return nil
}

// exchange is how long the GPUs of a machine take to send bytes to each other, as many to each.
func (c Cluster) exchange(bytes float64) float64 {
	return float64(c.GPUs-1) * (c.GPU.Copy.Seconds() + bytes/c.GPU.Link)
}

// hop is how long it takes until bytes of each GPU are on GPUs of other machines, in some messages of each machine.
func (c Cluster) hop(bytes, messages float64) float64 {
	toHost := c.GPU.Copy.Seconds() + bytes/c.GPU.Bandwidth
	return 2*toHost + c.GPU.Latency.Seconds() + float64(c.GPUs)*bytes/c.Network + messages*c.Message
}

func (c Cluster) regrouped(bytes float64) float64 {
	machines, gpus := float64(c.Machines), float64(c.GPUs)
	part := bytes / gpus
	takes := 2*c.exchange(part) + (gpus-1)*c.work(part/4, 3*part)
	part /= machines
	return takes + (machines-1)*(2*c.hop(part, 1)+c.work(part/4, 3*part))
}

func (c Cluster) paired(bytes float64) (takes float64) {
	for n := 1; n < c.GPUs*c.Machines; n *= 2 {
		bytes /= 2
		way := c.GPU.Copy.Seconds() + bytes/c.GPU.Link
		if n >= c.GPUs {
			way = c.hop(bytes, 1)
		}
		takes += 2*way + c.work(bytes/4, 3*bytes)
	}
	return takes
}
