package cpu_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/device/cpu"
	"github.com/asyncgen/asyncgen/device/devicetest"
)

func TestConformance(t *testing.T) { devicetest.TestBackend(t, cpu.New(), devicetest.Options{}) }
