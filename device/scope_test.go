package device_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	_ "github.com/asyncgen/asyncgen/device/cpu"
)

// A scope is its device under another identity; joining is like the union of sets.
func TestScopes(t *testing.T) {
	cpu, other := device.CPU(), device.Wrap("other", device.KindCPU, device.CPU().Backend())
	ctx, cancel := context.WithCancelCause(context.Background())
	a, b := device.WithContext(ctx, cpu), device.WithContext(context.Background(), cpu)
	inner := device.WithContext(context.Background(), a)
	if a == cpu || a == b || a.Unscoped() != cpu || a.Name() != cpu.Name() || a.Index() != cpu.Index() || a.Backend() != cpu.Backend() || a.Kind() != cpu.Kind() {
		t.Errorf("the scope is %v, number %d", a, a.Index())
	}
	if cpu.Scope() != nil || (device.Device{}).Scope() != nil || a.Scope() == nil {
		t.Error("which devices are scopes is wrong")
	}
	same := func(what string, got, want device.Device) {
		t.Helper()
		if got != want {
			t.Errorf("%s: another device", what)
		}
	}
	join := func(x, y device.Device) device.Device {
		t.Helper()
		d, ok := device.Join(x, y)
		if !ok {
			t.Errorf("%v and %v are different devices", x, y)
		}
		return d
	}
	same("nothing and a", join(cpu, a), a)
	same("a and nothing", join(a, cpu), a)
	same("a and what is within", join(a, inner), inner)
	same("what is within and a", join(inner, a), inner)
	both := join(a, b)
	same("the union again", join(both, b), both)
	same("the default device", device.Device{}.Within(b), device.Default().Within(b))
	if !both.Scope().Within(a.Scope()) || !both.Scope().Within(b.Scope()) || a.Scope().Within(b.Scope()) || !inner.Scope().Within(a.Scope()) {
		t.Error("what belongs to which scope is wrong")
	}
	if _, ok := device.Join(other, a); ok {
		t.Error("two devices are one")
	}
	same("elsewhere", other.Within(a).Unscoped(), other)
	same("elsewhere again", other.Within(a), other.Within(a))

	cause := errors.New("enough")
	cancel(cause)
	for d, want := range map[device.Device]error{a: cause, b: nil, both: cause, inner: cause, other.Within(a): cause} {
		if err := d.Scope().Err(); err != want {
			t.Errorf("the error is %v, want %v", err, want)
		}
	}
}

func ExampleWithContext() {
	ctx, cancel := context.WithCancel(context.Background())
	request := device.WithContext(ctx, device.CPU())
	fmt.Println(request, request == device.CPU(), request.Unscoped() == device.CPU())
	cancel()
	fmt.Println(request.Scope().Err())
	// Output:
	// cpu false true
	// context canceled
}
