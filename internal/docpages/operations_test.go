package main

import (
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// notNamed are functions that have no place among operations.
var notNamed = map[string]string{
	"tensor.VMapRows": "generated code calls it",
	"tensor.VMapSure": "generated code calls it",
	"F64":             "the generator makes it of Item",
	"I64":             "the generator makes it of ItemInt",
}

// Every operation, layer, loss and optimiser is on the page, and everything on the page exists.
func TestOperationsAreListed(t *testing.T) {
	listed := make(map[string]bool)
	for _, table := range namesTables() {
		for _, r := range table.rows {
			for _, name := range strings.Split(r.ours, ", ") {
				if name != "" && listed[name] {
					t.Errorf("%s is listed twice", name)
				}
				listed[name] = true
			}
			// A bug: an argument behind a comma was a name of its own.
			for _, name := range strings.Split(r.numpy+", "+r.torch, ", ") {
				if strings.Count(name, "(") != strings.Count(name, ")") {
					t.Errorf("%q has a comma in it", name)
				}
			}
		}
	}
	delete(listed, "")
	const base = "github.com/asyncgen/asyncgen/runtime/"
	exists := map[string]bool{"optim.Plateau": true} // a type
	for full, f := range tensorapi.Ours().Funcs {
		name, ok := strings.CutPrefix(full, base)
		method, isMethod := strings.CutPrefix(full, "(*"+base+"tensor.Tensor).")
		switch {
		case isMethod:
			name = method
		case !ok || !strings.HasPrefix(name, "tensor.") && !strings.HasPrefix(name, "nn.") && !strings.HasPrefix(name, "optim.") && !strings.HasPrefix(name, "files."):
			continue
		}
		exists[name] = true
		isLayer := f.Kind == tensorapi.Pure && (strings.HasPrefix(name, "nn.") || strings.HasPrefix(name, "optim."))
		switch f.Kind {
		case tensorapi.Op, tensorapi.View, tensorapi.Draw, tensorapi.Host:
		default:
			if !isLayer {
				continue
			}
		}
		if !listed[name] && notNamed[name] == "" {
			t.Errorf("%s is not in operations.txt", name)
		}
	}
	for name := range listed {
		if !exists[name] {
			t.Errorf("operations.txt lists %s, and there is no such function", name)
		}
	}
}
