// Package gorgonia has some signatures of the package of this name.
package gorgonia

import "fmt"

type (
	Node        struct{ _ int }
	tapeMachine struct{ _ int }

	Value interface {
		Data() any
		fmt.Formatter
	}
)

func NewTapeMachine() *tapeMachine { return nil }

func (m *tapeMachine) RunAll() error { return nil }
func (m *tapeMachine) Reset()        {}
func (n *Node) Value() Value         { return nil }
