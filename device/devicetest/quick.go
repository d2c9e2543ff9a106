package devicetest

import "os"

// QuickSim makes simulated devices answer sooner, in this process and in those that it starts, unless ASYNCGEN_SIM is
// set. It is for the TestMain of packages whose tests wait often, as a processor is busy while a test waits for a
// simulated device. Values still arrive late.
func QuickSim() {
	if os.Getenv("ASYNCGEN_SIM") == "" {
		os.Setenv("ASYNCGEN_SIM", "launch=1us,latency=5us,copy=2us")
	}
}
