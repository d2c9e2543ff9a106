// Package files is a stub with the signatures of the real one, which the tests of the rules are
// type-checked against.
package files

import "github.com/asyncgen/asyncgen/runtime/tensor"

type SaveOptions struct{ Shard int64 }

func Save(path string, m any, options ...SaveOptions) error { return nil }

func Write(path string, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	return nil
}

func WriteNPY(path string, t *tensor.Tensor) error { return nil }
func ReadNPY(path string) (*tensor.Tensor, error)  { return nil, nil }

type File struct{}

func Open(path string) (*File, error) { return nil, nil }

func (f *File) Tensor(name string) (*tensor.Tensor, error) { return nil, nil }
func (f *File) Close() error                               { return nil }

type Parts map[string]any

type CheckpointOptions struct{ Keep int }

type Checkpoints struct{}

func NewCheckpoints(dir string, parts Parts, options ...CheckpointOptions) *Checkpoints { return nil }

func (c *Checkpoints) Save(step int) error           { return nil }
func (c *Checkpoints) SaveAsync(step int) error      { return nil }
func (c *Checkpoints) Wait() error                   { return nil }
func (c *Checkpoints) Resume() (step int, err error) { return 0, nil }
