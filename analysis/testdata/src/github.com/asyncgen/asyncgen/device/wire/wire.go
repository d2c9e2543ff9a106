// Package wire has the signatures of the real package that the tests need.
package wire

import "time"

type Job struct{ patience time.Duration }

func (j *Job) Rank() int      { return 0 }
func (j *Job) Fail(err error) {}
func (j *Job) Close() error   { return nil }
