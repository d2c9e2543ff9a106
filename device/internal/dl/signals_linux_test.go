package dl

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// ignore takes a signal away from Go's runtime, as a driver might.
func ignore(signal int) {
	const sigIgnore = 1
	setHandler(signal, &sigaction{handler: sigIgnore})
}

func TestKeepSignals(t *testing.T) {
	const taken = int(syscall.SIGUSR2)
	before := handlerOf(taken)
	if ours := handlerOf(int(syscall.SIGURG)); before.handler != ours.handler {
		t.Fatalf("the handler of signal %d is not Go's", taken)
	}
	KeepSignals(func() {
		ignore(taken)
		if handlerOf(taken).handler == before.handler {
			t.Error("the signal was not taken")
		}
	})
	if got := handlerOf(taken); got != before {
		t.Errorf("signal %d has %x, want %x", taken, got, before)
	}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGUSR2)
	defer signal.Stop(arrived)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	<-arrived
}

func TestKeepSignalsAfterAPanic(t *testing.T) {
	before := handlerOf(int(syscall.SIGUSR2))
	func() {
		defer func() { recover() }()
		KeepSignals(func() { ignore(int(syscall.SIGUSR2)); panic("driver") })
	}()
	if got := handlerOf(int(syscall.SIGUSR2)); got != before {
		t.Errorf("got %x, want %x", got, before)
	}
}

// Go's own change of a handler during KeepSignals is not undone.
func TestKeepSignalsLeavesGo(t *testing.T) {
	ours := handlerOf(int(syscall.SIGURG))
	saved := handlerOf(int(syscall.SIGUSR2))
	defer setHandler(int(syscall.SIGUSR2), &saved)
	ignore(int(syscall.SIGUSR2))
	KeepSignals(func() { setHandler(int(syscall.SIGUSR2), &ours) })
	if got := handlerOf(int(syscall.SIGUSR2)); got.handler != ours.handler {
		t.Errorf("got handler %x, want Go's, %x", got.handler, ours.handler)
	}
}
