package main

import (
	"fmt"
	"os"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/mpi"
	"github.com/asyncgen/asyncgen/device/wire"
)

// mainOverRanks is main with -ranks, which alone opens the library of MPI. It trains on the first device of each rank,
// by the clock of the system, as messages take no virtual time. Then rank 0 trains alone, and prints. It does not
// return.
func mainOverRanks(c config, devices []device.Device, clock func() time.Duration) {
	mpi.Run(func(ranks *mpi.Transport) error {
		job, err := wire.NewJob(ranks, wire.Options{})
		if err != nil {
			return err
		}
		over := train(c, job, devices[:1], systemClock())
		if err := job.Close(); err != nil || job.Rank() != 0 {
			return err
		}
		fmt.Fprintf(os.Stderr, "%d ranks: %.3f ms a step\n\n", job.Size(), over.step.Seconds()*1e3)
		report(over, trainings(c, devices, clock)[1:])
		return nil
	})
}
