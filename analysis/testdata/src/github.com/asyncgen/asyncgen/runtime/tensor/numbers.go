package tensor

import "fmt"

type F64 struct{ _ int }

func (t *Tensor) F64() F64                  { return F64{} }
func (x F64) Add(y F64) F64                 { return x }
func (x F64) Item() float64                 { return 0 }
func (x F64) Format(s fmt.State, verb rune) {}
