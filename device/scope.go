package device

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// A Scope is the part of a program's work that ends with a context, or with any of several. See [WithContext].
type Scope struct {
	members []*member // sorted by number, at least one

	mu      sync.Mutex        // guards devices
	devices map[*state]*state // by the device without a scope: that device in this scope
}

// A member is one call of WithContext.
type member struct {
	number int
	ctx    context.Context
	noted  atomic.Int64 // see Note

	inBubble bool                  // ctx may belong to a bubble of testing/synctest: no goroutine outside may ask it
	ended    atomic.Pointer[error] // if inBubble: the cause of the end, once that is known
}

// err is the cause of the end of m's context; nil while the context has not ended.
func (m *member) err() error {
	switch {
	case !m.inBubble && m.ctx.Err() != nil:
		return context.Cause(m.ctx)
	case m.inBubble:
		if bubble.In() && m.ctx.Err() != nil {
			m.end()
		}
		if err := m.ended.Load(); err != nil {
			return *err
		}
	}
	return nil
}

func (m *member) end() {
	err := context.Cause(m.ctx)
	m.ended.CompareAndSwap(nil, &err)
}

var scopes struct {
	mu   sync.Mutex // guards made
	made int
}

// WithContext returns a Device that is the same device as dev, but a scope. Tensors made on it belong to
// the scope, and so does every result that depends on one of them. A result that depends on several
// scopes belongs to all of them. If dev is a scope itself, everything in the new one is in dev, too.
//
// When ctx ends, operations of the scope that have not begun fail with its cause instead of running,
// and operations that depend on them fail, too. Each fails when its turn comes. So a read that has to
// end with the context takes the context itself (ItemContext). Other operations are left alone, and
// computed results can still be read. asyncrt.Synchronize of the scope waits for its operations
// alone. A scope needs no closing.
//
// The result is not equal to dev. [Device.Unscoped] returns the device without scopes.
func WithContext(ctx context.Context, dev Device) Device {
	scopes.mu.Lock()
	scopes.made++
	m := &member{number: scopes.made, ctx: ctx, inBubble: bubble.In()}
	scopes.mu.Unlock()
	if m.inBubble {
		context.AfterFunc(ctx, m.end)
	}
	d := dev.state()
	s := &Scope{members: []*member{m}}
	if d.scope != nil {
		s.members = append(slices.Clone(d.scope.members), m)
	}
	return s.on(d)
}

// Scope returns the scope that d stands for, or nil.
func (d Device) Scope() *Scope {
	if d.d == nil {
		return nil
	}
	return d.d.scope
}

// Unscoped returns d outside of any scope.
func (d Device) Unscoped() Device {
	s := d.state()
	if s.scope != nil {
		s = s.base
	}
	return Device{s}
}

// Join returns the device of results that depend on what is made on d and on other: d, in the scopes of both. It
// reports false if these are different devices.
func Join(d, other Device) (Device, bool) {
	if d.d == other.d {
		return d, true
	}
	return d.Within(other), d.Unscoped() == other.Unscoped()
}

// Within returns d in its own scopes and in those of other. other may be a different device.
func (d Device) Within(other Device) Device {
	d = d.Or()
	a, b := d.Scope(), other.Scope()
	switch {
	case b == nil || a != nil && a.Within(b):
		return d
	case a == nil || b.Within(a):
		return b.on(d.state())
	}
	s := &Scope{members: append(slices.Clone(a.members), b.members...)}
	slices.SortFunc(s.members, func(x, y *member) int { return x.number - y.number })
	s.members = slices.Compact(s.members)
	return s.on(d.state())
}

// on returns the device d in the scope s. If d is in a scope, s replaces it.
func (s *Scope) on(d *state) Device {
	if d.scope != nil {
		d = d.base
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.devices[d]
	if in == nil {
		in = &state{name: d.name, index: d.index, kind: d.kind, backend: d.backend, base: d, scope: s}
		if s.devices == nil {
			s.devices = map[*state]*state{}
		}
		s.devices[d] = in
	}
	return Device{in}
}

// Err returns the cause of the end of the first of the scope's contexts that has ended, or nil.
func (s *Scope) Err() error {
	for _, m := range s.members {
		if err := m.err(); err != nil {
			return err
		}
	}
	return nil
}

// Note notes that an operation of s finished at t or later, by a [VirtualClock].
func (s *Scope) Note(t time.Duration) {
	for _, m := range s.members {
		for at := m.noted.Load(); int64(t) > at && !m.noted.CompareAndSwap(at, int64(t)); at = m.noted.Load() {
		}
	}
}

// Noted returns the latest time noted for work of s. If s combines several scopes, it is the earliest
// of their latest times. That may be too late, since each scope has work of its own as well.
func (s *Scope) Noted() time.Duration {
	noted := s.members[0].noted.Load()
	for _, m := range s.members {
		noted = min(noted, m.noted.Load())
	}
	return time.Duration(noted)
}

// Within reports whether everything that belongs to s also belongs to t.
func (s *Scope) Within(t *Scope) bool {
	for _, m := range t.members {
		if !slices.Contains(s.members, m) {
			return false
		}
	}
	return true
}
