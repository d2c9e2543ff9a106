package scalars_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	_ "github.com/asyncgen/asyncgen/device/opencl"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/scalars"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A gate is a slow device: each Tanh waits for a token.
type gate struct {
	device.Backend
	tokens chan struct{}
}

func (g *gate) Submit(cmds []device.Command) (device.Ticket, error) {
	for _, c := range cmds {
		if c.Kernel.Name == "Tanh" {
			<-g.tokens
		}
	}
	return g.Backend.Submit(cmds)
}

func gated() (device.Device, *gate) {
	g := &gate{device.CPU().Backend(), make(chan struct{}, 1000)}
	return device.Wrap("gated", device.KindSimulated, g), g
}

func open(t *testing.T, o scalars.Options) *scalars.Writer {
	t.Helper()
	w, err := scalars.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func shut(t *testing.T, w *scalars.Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// show formats series so that NaNs are equal.
func show(list []scalars.Series) string { return fmt.Sprint(list) }

// show32 is show of the values as float32s: files have no more digits of a float32.
func show32(list []scalars.Series) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprint(&b, s.Name, s.Steps)
		for _, v := range s.Values {
			fmt.Fprint(&b, " ", float32(v))
		}
	}
	return b.String()
}

// A number that is not known holds up those behind it, and nothing else: no call waits before Close. The program may
// declare its handles dead.
func TestOrder(t *testing.T) {
	on, g := gated()
	x := tensor.On(on).Ones(1)
	w := open(t, scalars.Options{})
	before := asyncrt.Stats().Waits
	w.Add(0, "a", 0.5)
	blocked := x.Tanh()
	w.Add(1, "a", blocked)
	w.Add(2, "b", 3)
	w.Add(2, "a", tensor.On(device.CPU()).Full(2, 1, 1))
	if got, want := show(w.Series()), "[{a [0] [0.5]}]"; got != want {
		t.Errorf("the series are %v, want %v", got, want)
	}
	if waits := asyncrt.Stats().Waits - before; waits > 0 {
		t.Errorf("%d waits", waits)
	}
	g.tokens <- struct{}{}
	if err := blocked.Wait(); err != nil {
		t.Fatal(err)
	}
	tensor.Dead(blocked)
	tanh := float64(float32(math.Tanh(1)))
	if got, want := show(w.Series("b", "c", "a")), fmt.Sprintf("[{b [2] [3]} {c [] []} {a [0 1 2] [0.5 %v 2]}]", tanh); got != want {
		t.Errorf("the series are %v, want %v", got, want)
	}
	shut(t, w)
	shut(t, w)
	if got := show(w.Series("b")); got != "[{b [2] [3]}]" {
		t.Errorf("after Close, b is %v", got)
	}
}

// On each device a loop of training adds without a wait, and the numbers are those of the device.
func TestDevices(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		t.Run(name, func(t *testing.T) {
			on, err := device.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			w := open(t, scalars.Options{})
			before := asyncrt.Stats().Waits
			x := tensor.On(on).Ones(3)
			var want []float64
			for i := range 50 {
				x = x.AddScalar(1)
				loss := x.Sum()
				w.Add(i, "loss", loss)
				tensor.Dead(loss)
				want = append(want, float64(3*(i+2)))
			}
			if waits := asyncrt.Stats().Waits - before; waits > 0 {
				t.Errorf("%d waits", waits)
			}
			shut(t, w)
			if got := w.Series("loss")[0].Values; !reflect.DeepEqual(got, want) {
				t.Errorf("the values are %v, want %v", got, want)
			}
		})
	}
}

// With too many unknown numbers, Add waits for the oldest.
func TestBound(t *testing.T) {
	on, g := gated()
	w := open(t, scalars.Options{})
	blocked := tensor.On(on).Ones(1).Tanh()
	before := asyncrt.Stats().Waits
	for i := range 4096 {
		w.Add(i, "x", blocked)
	}
	if waits := asyncrt.Stats().Waits - before; waits > 0 || len(w.Series()) > 0 {
		t.Errorf("%d waits, series %v", waits, w.Series())
	}
	go func() {
		for !isIn("known.(*Number).Wait") {
			runtime.Gosched()
		}
		g.tokens <- struct{}{}
	}()
	w.Add(4096, "x", blocked)
	if waits := asyncrt.Stats().Waits - before; waits != 1 {
		t.Errorf("%d waits, want one", waits)
	}
	if n := len(w.Series("x")[0].Steps); n != 4097 {
		t.Errorf("%d numbers are known, want 4097", n)
	}
	shut(t, w)
}

// isIn reports whether a goroutine is executing the given function.
func isIn(function string) bool {
	for size := 1 << 16; ; size *= 2 {
		stacks := make([]byte, size)
		if n := runtime.Stack(stacks, true); n < size {
			return strings.Contains(string(stacks[:n]), function+"(")
		}
	}
}

// Close returns the error of an operation, with its line, and what else there is is written.
func TestFailedOperation(t *testing.T) {
	for _, name := range devicetest.Names(t) {
		t.Run(name, func(t *testing.T) {
			on, err := device.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			w := open(t, scalars.Options{CSV: filepath.Join(t.TempDir(), "a", "b", "s.csv")})
			zero, one := tensor.On(on).FullInt(0, 1), tensor.On(on).FullInt(1, 1)
			w.Add(1, "good", one)
			bad := one.Div(zero)
			w.Add(2, "bad", bad)
			w.Add(3, "worse", zero.Div(zero))
			w.Add(4, "good", one.Div(one))
			err = w.Close()
			var failed *asyncrt.OpError
			if !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), "scalars: bad of step 2: ") {
				t.Errorf("Close returns %v", err)
			}
			var itself *asyncrt.OpError
			if !errors.As(bad.Wait(), &itself) || failed != nil && (failed.File != itself.File || failed.Line != itself.Line || failed.Line == 0) {
				t.Errorf("Close returns %v, the operation %v", failed, itself)
			}
			if again := w.Flush(); again != err {
				t.Errorf("Flush after Close returns %v", again)
			}
			if again := w.Close(); again != err {
				t.Errorf("Close again returns %v", again)
			}
			if got := show(w.Series()); got != "[{good [1 4] [1 1]}]" {
				t.Errorf("the series are %v", got)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	w := open(t, scalars.Options{})
	closed := open(t, scalars.Options{})
	shut(t, closed)
	var none *tensor.Tensor
	for name, call := range map[string]func(){
		"no name":       func() { w.Add(1, "", 1.0) },
		"a line":        func() { w.Add(1, "a\nb", 1.0) },
		"no UTF-8":      func() { w.Add(1, "a\xff", 1.0) },
		"a text":        func() { w.Add(1, "a", "1") },
		"nothing":       func() { w.Add(1, "a", nil) },
		"nil":           func() { w.Add(1, "a", none) },
		"two elements":  func() { w.Add(1, "a", tensor.Ones(2)) },
		"after Close":   func() { closed.Add(1, "a", 1) },
		"a dead tensor": func() { x := tensor.Ones(1); tensor.Dead(x); w.Add(1, "a", x) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if m, ok := recover().(*tensor.Mistake); !ok {
					t.Errorf("the panic is %v", m)
				}
			}()
			call()
		})
	}
	w.Add(1, "a", 1) // the Writer can still be used
	shut(t, w)
	if got := show(w.Series()); got != "[{a [1] [1]}]" {
		t.Errorf("the series are %v", got)
	}
}

// add adds numbers of all sorts.
func add(w *scalars.Writer, from int) {
	w.Add(from, "loss", float32(0.1))
	w.Add(from, `a "b", c`, 0.1)
	w.Add(from+1, "loss", tensor.Full(0.3, 1).As(tensor.Float16))
	w.Add(from+1, "count", int64(1)<<53+2)
	w.Add(from+2, "loss", math.NaN())
	w.Add(from+3, "loss", tensor.Full(-1, 1).Log().Neg().MulScalar(math.Inf(1)))
	w.Add(from+4, "loss", math.Inf(1))
	w.Add(from+5, "loss", math.Inf(-1))
	w.Add(from+5, "epoch ü", int32(-3))
	w.Add(from+6, "int32", tensor.FullInt(1<<24+1, 1).As(tensor.Int32))
}

// What is written is read again, whichever the form, also if a run was interrupted in the middle of a line and went on
// from an earlier state.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	o := scalars.Options{CSV: filepath.Join(dir, "s.csv"), JSONLines: filepath.Join(dir, "s.jsonl")}
	w := open(t, o)
	add(w, 0)
	shut(t, w)
	for _, path := range []string{o.CSV, o.JSONLines} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s:\n%s", filepath.Base(path), text)
		got, err := scalars.Read(path)
		if want := w.Series(); err != nil || show32(got) != show32(want) {
			t.Errorf("%s has %v, %v, want %v", path, got, err, want)
		}
		torn := append(text, text[len(text)-20:len(text)-4]...)
		if err := os.WriteFile(path, torn, 0o666); err != nil {
			t.Fatal(err)
		}
		if torn, err := scalars.Read(path); err != nil || show(torn) != show(got) {
			t.Errorf("with half a line at its end, %s has %v, %v, want %v", path, torn, err, got)
		}
		shut(t, open(t, o))
		if mended, err := os.ReadFile(path); err != nil || string(mended) != string(text) {
			t.Errorf("opened again, %s is\n%s, %v", path, mended, err)
		}
	}
	o.Resume = 2
	w = open(t, o)
	w.Add(2, "loss", 7)
	w.Add(3, "loss", 8)
	shut(t, w)
	for _, path := range []string{o.CSV, o.JSONLines} {
		got, err := scalars.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := show(got[:1]), "[{loss [0 1 2 3] [0.1 0.30004883 7 8]}]"; got != want {
			t.Errorf("%s has %s after it went on, want %s", path, got, want)
		}
	}
}

// Every line of JSON is one for encoding/json, and has the fields that are promised.
func TestJSONLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	w := open(t, scalars.Options{JSONLines: path})
	before := time.Now()
	add(w, 0)
	shut(t, w)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var values []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Step  *int
			Name  string
			Value any
			Time  time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Step == nil || line.Name == "" {
			t.Errorf("%s: %v", lines.Bytes(), err)
		}
		if d := line.Time.Sub(before); d < -time.Millisecond || d > time.Hour {
			t.Errorf("%s: the time is %v after the test began", lines.Bytes(), d)
		}
		values = append(values, fmt.Sprint(line.Value))
	}
	if got, want := strings.Join(values, " "), "0.1 0.1 0.30004883 9.007199254740994e+15 NaN NaN Infinity -Infinity -3 1.6777217e+07"; got != want {
		t.Errorf("the values are %s, want %s", got, want)
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.txt")
	if err := os.WriteFile(other, []byte("my thesis, only copy"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]scalars.Options{
		"csv":         {CSV: other},
		"jsonl":       {JSONLines: other},
		"folder":      {CSV: dir},
		"tensorboard": {CSV: filepath.Join(dir, "new.csv"), TensorBoard: other},
	} {
		if w, err := scalars.Open(o); err == nil || w != nil || !strings.HasPrefix(err.Error(), "scalars: ") {
			t.Errorf("%s: Open returns %v, %v", name, w, err)
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "my thesis, only copy" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	for _, path := range []string{other, filepath.Join(dir, "none")} {
		if list, err := scalars.Read(path); path != other && err == nil || len(list) > 0 {
			t.Errorf("Read of %s returns %v, %v", path, list, err)
		}
	}
	for text, want := range map[string]string{
		"step,name,value,time\n1,a,2,now\n1,b,x,now\n":                                                                              `the value is "x", want a number`,
		"step,name,value,time\n1,a,2,now\nwidth,length,kind,x\n":                                                                    `the step is "width", want an integer`,
		"step,name,value,time\n1,a,2,now\n2,a,2,now,and more\n":                                                                     "not four fields",
		"{\"step\":1,\"name\":\"a\",\"value\":2}\n\n":                                                                               "",
		"{\"step\":1,\"name\":\"a\",\"value\":2}\n{\"step\":2,\"name\":\"a\",\"value\":2}{\"step\":3,\"name\":\"a\",\"value\":2}\n": "",
	} {
		if err := os.WriteFile(other, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if list, err := scalars.Read(other); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("other.txt:%d: %s", strings.Count(text, "\n"), want)) || len(list) != 1 || len(list[0].Steps) != 1 {
			t.Errorf("Read of %q returns %v, %v", text, list, err)
		}
	}
}

// What is known is in the file a second later, even if the loop does nothing more.
func TestFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.csv")
	read := func() string {
		list, err := scalars.Read(path)
		if err != nil {
			t.Error(err)
		}
		return show(list)
	}
	on, g := gated()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, scalars.Options{CSV: path})
		w.Add(1, "a", 1)
		if got := read(); got != "[]" {
			t.Errorf("at once, the file has %s", got)
		}
		time.Sleep(time.Second + 1)
		synctest.Wait()
		if got := read(); got != "[{a [1] [1]}]" {
			t.Errorf("a second later, the file has %s", got)
		}
		blocked := tensor.On(on).Zeros(1).Tanh()
		w.Add(2, "a", blocked)
		time.Sleep(10 * time.Second)
		g.tokens <- struct{}{}
		if err := blocked.Wait(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second + 1)
		synctest.Wait()
		if got := read(); got != "[{a [1 2] [1 0]}]" {
			t.Errorf("a second after a number is known, the file has %s", got)
		}
		w.Add(3, "a", tensor.Scalar(3).Square())
		w.Add(3, "b", 5)
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		want := "[{a [1 2 3] [1 0 9]} {b [3] [5]}]"
		if got := read(); got != want {
			t.Errorf("after Flush, the file has %s", got)
		}
		shut(t, w)
		if err := w.Flush(); err != nil || read() != want {
			t.Errorf("Flush after Close: %v, the file has %s", err, read())
		}
	})
}

// Several goroutines may add. The numbers of each are in its order.
func TestConcurrent(t *testing.T) {
	w := open(t, scalars.Options{JSONLines: filepath.Join(t.TempDir(), "s.jsonl")})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			x := tensor.Zeros(1)
			for i := range 100 {
				x = x.AddScalar(1)
				w.Add(i, fmt.Sprint(g), x)
				w.Series()
			}
		})
	}
	wg.Wait()
	shut(t, w)
	for _, s := range w.Series() {
		for i := range s.Steps {
			if s.Steps[i] != i || s.Values[i] != float64(i+1) {
				t.Fatalf("number %d of %s is %v of step %d", i, s.Name, s.Values[i], s.Steps[i])
			}
		}
	}
}

// TensorBoard reads what is written, and forgets what a run that went on has replaced. The test runs where Python has
// the package tensorboard; ASYNCGEN_PYTHON names the program, or python3 does.
func TestTensorBoard(t *testing.T) {
	python := os.Getenv("ASYNCGEN_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import tensorboard").CombinedOutput(); err != nil {
		t.Skipf("%s can't import tensorboard (%v); ASYNCGEN_PYTHON may name one that can. %s", python, err, out)
	}
	dir := t.TempDir()
	w := open(t, scalars.Options{TensorBoard: dir})
	add(w, 10)
	shut(t, w)
	read := func() map[string][]string {
		cmd := exec.Command(python, filepath.Join("testdata", "read.py"), dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string][]string)
		for line := range strings.Lines(string(out)) {
			var v struct {
				Name, Value string
				Step        int
				Time        float64
			}
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			if age := time.Since(time.UnixMicro(int64(v.Time * 1e6))); age < 0 || age > time.Hour {
				t.Errorf("%s: %v ago", line, age)
			}
			all[v.Name] = append(all[v.Name], fmt.Sprintf("%d:%.5s", v.Step, v.Value))
		}
		return all
	}
	want := map[string][]string{
		"loss":     {"10:0.100", "11:0.300", "12:nan", "13:nan", "14:inf", "15:-inf"},
		`a "b", c`: {"10:0.100"},
		"count":    {"11:90071"},
		"epoch ü":  {"15:-3.0"},
		"int32":    {"16:16777"},
	}
	want["loss"][1] = read()["loss"][1] // float16
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("TensorBoard reads\n%v, want\n%v", got, want)
	}
	w = open(t, scalars.Options{TensorBoard: dir, Resume: 12})
	w.Add(12, "loss", 2)
	shut(t, w)
	if got := read()["loss"]; !reflect.DeepEqual(got, []string{want["loss"][0], want["loss"][1], "12:2.0"}) {
		t.Errorf("TensorBoard reads %v of a run that went on", got)
	}
}
