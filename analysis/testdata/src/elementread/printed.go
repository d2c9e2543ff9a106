package elementread

import (
	"fmt"
	"log"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func rows(t *tensor.Tensor, names []string) {
	for i := range t.Dim(0) {
		fmt.Println(i, t.Row(i)) // want `fmt.Println\(i, t.Row\(i\)\) reads one part of t in each iteration`
	}
	for i, name := range names {
		log.Printf("%s: %v", name, t.Row(i)) // want `AT006`
		log.Printf("%s: %T", name, t.Row(i))
		log.Println(name, t.Row(len(name)))
		if i%10 == 0 {
			log.Println(name, t.Row(i))
		}
	}
	for i := range 3 {
		fmt.Println(i, t.Row(i))
	}
	for i := range names {
		t = t.AddScalar(1)
		fmt.Println(t.Row(i)) // AT004
	}
}
