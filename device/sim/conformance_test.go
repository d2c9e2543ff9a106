package sim_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/sim"
)

func TestConformance(t *testing.T) {
	t.Run("default costs", func(t *testing.T) { devicetest.TestBackend(t, sim.New(sim.Defaults()), devicetest.Options{}) })
	t.Run("virtual time", func(t *testing.T) {
		devicetest.TestBackend(t, sim.New(sim.VirtualDefaults()), devicetest.Options{Wraps: true})
	})
	t.Run("tiny queue", func(t *testing.T) {
		devicetest.TestBackend(t, sim.New(sim.Options{Queue: 2}), devicetest.Options{Wraps: true})
	})
}
