package device_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	_ "github.com/asyncgen/asyncgen/device/cpu"
)

func TestDiagnose(t *testing.T) {
	none := errors.New("open libnothing.so: no such file")
	device.Register(device.Driver{
		Name:  "diagnosed",
		Kind:  device.KindSimulated,
		Count: func() (int, error) { return 0, none },
		Notes: func() []string { return []string{"libnothing.so was tried"} },
	})
	device.Register(device.Driver{Name: "panicking", Kind: device.KindSimulated, Count: func() (int, error) { panic("bad driver") }})
	device.Register(device.Driver{
		Name:  "refusing",
		Kind:  device.KindSimulated,
		Count: func() (int, error) { return 2, nil },
		Open:  func(int) (device.Backend, error) { return nil, none },
	})
	by := map[string]device.Diagnosis{}
	for _, d := range device.Diagnose() {
		by[d.Driver] = d
	}
	if d := by["cpu"]; d.Err != nil || len(d.Devices) != 1 || !strings.HasPrefix(d.Devices[0], "cpu: ") {
		t.Errorf("cpu: %+v", d)
	}
	if d := by["diagnosed"]; d.Err != none || d.Devices != nil || !slices.Equal(d.Notes, []string{"libnothing.so was tried"}) || d.Kind != device.KindSimulated {
		t.Errorf("a driver without devices: %+v", d)
	}
	if d := by["panicking"]; d.Err == nil || !strings.Contains(d.Err.Error(), "bad driver") {
		t.Errorf("a driver that panics: %+v", d)
	}
	if d := by["refusing"]; !errors.Is(d.Err, none) || d.Devices != nil {
		t.Errorf("a driver that can't open: %+v", d)
	}
}
