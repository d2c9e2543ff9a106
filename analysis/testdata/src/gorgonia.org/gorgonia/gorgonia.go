// Package gorgonia has some signatures of the package of this name.
package gorgonia

import "fmt"

type (
	ExprGraph   struct{ _ int }
	Node        struct{ _ int }
	tapeMachine struct{ _ int }

	Value interface {
		Data() any
		fmt.Formatter
	}
)

func NewGraph() *ExprGraph                      { return nil }
func NewTapeMachine(g *ExprGraph) *tapeMachine  { return nil }
func NewScalar(g *ExprGraph, name string) *Node { return nil }
func Add(a, b *Node) (*Node, error)             { return nil, nil }
func Let(n *Node, be any) error                 { return nil }

func (m *tapeMachine) RunAll() error { return nil }
func (m *tapeMachine) Reset()        {}
func (n *Node) Value() Value         { return nil }
