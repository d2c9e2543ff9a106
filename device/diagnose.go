package device

import (
	"fmt"
	"slices"
)

// A Diagnosis is what a driver says about its devices.
type Diagnosis struct {
	Driver  string
	Kind    Kind
	Devices []string // those that can be used, by name and description: "opencl:0: NVIDIA H200, ..."
	Err     error    // why there are none, or fewer
	Notes   []string // see Driver
}

// Diagnose asks each driver of this program for its devices, and opens them. A panic of a driver becomes its Err.
func Diagnose() []Diagnosis {
	registry.mu.Lock()
	drivers := slices.Clone(registry.drivers)
	registry.mu.Unlock()
	var all []Diagnosis
	for _, drv := range drivers {
		all = append(all, drv.diagnose())
	}
	return all
}

func (drv *Driver) diagnose() (d Diagnosis) {
	d = Diagnosis{Driver: drv.Name, Kind: drv.Kind}
	defer func() {
		if p := recover(); p != nil {
			d.Err = fmt.Errorf("the driver panicked: %v", p)
		}
	}()
	n, err := drv.Count()
	d.Err = err
	for i := range n {
		opened, err := Open(fmt.Sprintf("%s:%d", drv.Name, i))
		if err != nil {
			d.Err = err
			break
		}
		d.Devices = append(d.Devices, opened.Name()+": "+opened.Caps().Description)
	}
	if drv.Notes != nil {
		d.Notes = drv.Notes()
	}
	return d
}
