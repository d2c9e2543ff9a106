package page

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/internal/trace"
)

// A browser is a Chromium that is told what to do through pipes, by the DevTools protocol
// (chromedevtools.github.io/devtools-protocol): messages in JSON, each with a zero byte behind it.
type browser struct {
	t        testing.TB
	to       io.Writer
	from     *bufio.Reader
	last     int
	session  string
	console  []string                         // errors and warnings
	isLoaded bool                             // the page, with all that it has
	lost     func(format string, args ...any) // ends the test if the browser has gone
	gone     func(format string, args ...any)
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// start starts a browser with a window of 1400 by 900 pixels; without one it skips the test.
func start(t testing.TB) *browser {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("pipes to a browser are not made on Windows")
	}
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium here to open the page in")
	}
	itsIn, to, err := os.Pipe()
	from, itsOut, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--user-data-dir="+t.TempDir())
	cmd.ExtraFiles = []*os.File{itsIn, itsOut}
	if err := cmd.Start(); err != nil {
		t.Skip("Chromium does not start: ", err)
	}
	itsIn.Close()
	itsOut.Close()
	b := &browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<16), lost: t.Skipf} // it may not work here
	t.Cleanup(func() {
		to.Write([]byte(`{"id":1,"method":"Browser.close"}` + "\x00"))
		io.Copy(io.Discard, from) // until it has gone
		cmd.Wait()
		to.Close()
		from.Close()
	})
	var target struct{ TargetID string }
	b.into(&target, "Target.createTarget", `{"url":"about:blank"}`)
	var attached struct{ SessionID string }
	b.into(&attached, "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, target.TargetID))
	b.session, b.lost = attached.SessionID, t.Fatalf
	for _, domain := range []string{"Runtime", "Log", "Page"} {
		b.call(domain+".enable", "{}")
	}
	b.call("Emulation.setDeviceMetricsOverride", `{"width":1400,"height":900,"deviceScaleFactor":1,"mobile":false}`)
	return b
}

// open opens a page of a trace and waits until it can be used.
func (b *browser) open(tr *trace.Trace, source func(string) []string) {
	b.t.Helper()
	b.openText(write(b.t, tr, source))
}

func (b *browser) openText(page string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
		b.t.Fatal(err)
	}
	b.isLoaded = false
	b.call("Page.navigate", fmt.Sprintf(`{"url":%q}`, "file://"+file))
	for !b.isLoaded {
		b.read()
	}
	if b.eval(`location.protocol`) != `"file:"` {
		b.t.Skip("the browser may not open ", file)
	}
	b.eval(`ready.then(() => 1)`)
	b.frame()
}

// call asks for something and returns the answer.
func (b *browser) call(method, params string) json.RawMessage {
	b.t.Helper()
	b.last++
	text, err := json.Marshal(message{ID: b.last, Method: method, Params: json.RawMessage(params), SessionID: b.session})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.lost("the browser has gone: %v", err)
	}
	for {
		switch m := b.read(); {
		case m.ID == b.last && m.Error != nil:
			b.t.Fatalf("%s %s: %s", method, params, m.Error.Message)
		case m.ID == b.last:
			return m.Result
		}
	}
}

// read returns the next message of the browser.
func (b *browser) read() (m message) {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err != nil {
		b.lost("the browser has gone: %v", err)
	}
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
		b.console = append(b.console, string(m.Params))
	case "Page.loadEventFired":
		b.isLoaded = true
	}
	return m
}

func (b *browser) into(result any, method, params string) {
	b.t.Helper()
	if err := json.Unmarshal(b.call(method, params), result); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression of the page as JSON. It waits for promises.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	params, err := json.Marshal(map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if err != nil {
		b.t.Fatal(err)
	}
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *json.RawMessage
	}
	b.into(&answer, "Runtime.evaluate", string(params))
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, *answer.ExceptionDetails)
	}
	return string(answer.Result.Value)
}

// has fails the test if the value of an expression lacks some text.
func (b *browser) has(what, expression string, want ...string) {
	b.t.Helper()
	var text string
	if got := b.eval(expression); json.Unmarshal([]byte(got), &text) != nil {
		text = got
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			b.t.Errorf("%s: the page has\n%s\nwithout %q", what, text, w)
		}
	}
}

// frame waits until the page is drawn.
func (b *browser) frame() {
	b.eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))`)
}

// mouse sends an event of the left button. modifiers: 8 is shift.
func (b *browser) mouse(kind string, x, y, modifiers int) {
	b.call("Input.dispatchMouseEvent", fmt.Sprintf(`{"type":%q,"x":%d,"y":%d,"button":"left","clickCount":1,"modifiers":%d,"buttons":1}`, kind, x, y, modifiers))
}

func (b *browser) click(x, y int) {
	b.mouse("mousePressed", x, y, 0)
	b.mouse("mouseReleased", x, y, 0)
	b.frame()
}

func (b *browser) key(key string) {
	text := ""
	if len(key) == 1 {
		text = fmt.Sprintf(`,"text":%q`, key)
	}
	b.call("Input.dispatchKeyEvent", fmt.Sprintf(`{"type":"keyDown","key":%q%s}`, key, text))
	b.call("Input.dispatchKeyEvent", fmt.Sprintf(`{"type":"keyUp","key":%q}`, key))
	b.frame()
}

// quiet fails the test if the page has written to the console.
func (b *browser) quiet() {
	b.t.Helper()
	if len(b.console) > 0 {
		b.t.Errorf("the console of the browser has\n%s", strings.Join(b.console, "\n"))
	}
}
