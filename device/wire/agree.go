package wire

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device"
)

// A program is what the ranks of a job must have in common, as hashes.
type program [3][sha256.Size]byte

// parts are the names of what a program consists of.
var parts = [len(program{})]string{"another file", "other arguments", "another version of Go"}

// programOf returns the program of this process, or one that is identified by a name.
func programOf(name string) (p program, err error) {
	if name != "" {
		p[0] = sha256.Sum256([]byte(name))
		return p, nil
	}
	path, err := os.Executable()
	if err != nil {
		return p, err
	}
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return p, err
	}
	h.Sum(p[0][:0])
	p[1] = sha256.Sum256([]byte(strings.Join(os.Args[1:], "\x00")))
	p[2] = sha256.Sum256([]byte(runtime.Version()))
	return p, nil
}

// bytes is the program as a message.
func (p program) bytes() []byte { return bytes.Join([][]byte{p[0][:], p[1][:], p[2][:]}, nil) }

// verdictBytes is the length of the message in which rank 0 says which rank runs another program. It is a text, filled
// up with zeros.
const verdictBytes = 256

// agree returns an error if the ranks do not run the same program, or if one does not come. Rank 0 compares.
func (j *Job) agree(p program) error {
	deadline := make(chan struct{})
	if j.timeout > 0 {
		defer time.AfterFunc(j.timeout, func() { close(deadline) }).Stop()
	}
	mine := p.bytes()
	if j.rank > 0 {
		sent, err := j.exchange(true, 0, mine)
		if err != nil {
			return err
		}
		told, err := j.exchange(false, 0, make([]byte, verdictBytes))
		if err != nil {
			return err
		}
		if _, err := sent.await(deadline, j.timeout); err != nil {
			return err
		}
		verdict, err := told.await(deadline, j.timeout)
		if err == nil && verdict[0] != 0 {
			err = fmt.Errorf("%s", bytes.TrimRight(verdict, "\x00"))
		}
		return err
	}
	var verdict string
	var asked []*exchanged
	for peer := 1; peer < j.size; peer++ {
		x, err := j.exchange(false, peer, make([]byte, len(mine)))
		if err != nil {
			return err
		}
		asked = append(asked, x)
	}
	for _, x := range asked {
		theirs, err := x.await(deadline, j.timeout)
		if err != nil {
			return err
		}
		if verdict == "" && !bytes.Equal(theirs, mine) {
			verdict = fmt.Sprintf("rank %d runs another program than rank 0: %s", x.peer, differences(mine, theirs))
		}
	}
	text := make([]byte, verdictBytes)
	copy(text, verdict)
	for peer := 1; peer < j.size; peer++ {
		x, err := j.exchange(true, peer, text)
		if err == nil {
			_, err = x.await(deadline, j.timeout)
		}
		if err != nil {
			return err
		}
	}
	if verdict != "" {
		return fmt.Errorf("%s", verdict)
	}
	return nil
}

// differences names the parts in which two programs differ.
func differences(a, b []byte) string {
	var list []string
	for i, part := range parts {
		if from := i * sha256.Size; !bytes.Equal(a[from:from+sha256.Size], b[from:from+sha256.Size]) {
			list = append(list, part)
		}
	}
	return strings.Join(list, ", ")
}

// An exchanged message is under way, before there are queues.
type exchanged struct {
	j     *Job
	peer  int
	buf   *device.Buffer
	n     int
	ended chan error
}

// exchange begins to send data, or to receive as many bytes.
func (j *Job) exchange(isSend bool, peer int, data []byte) (*exchanged, error) {
	buf, err := j.memory.Alloc(int64(len(data)))
	if err != nil {
		return nil, err
	}
	x := &exchanged{j, peer, buf, len(data), make(chan error, 1)}
	there := elements(buf, 0, len(data))
	copy(there, data)
	done := func(err error) { x.ended <- err }
	if isSend {
		j.transport.Send(peer, there, done)
	} else {
		j.transport.Receive(peer, there, done)
	}
	return x, nil
}

// await waits for x, and returns its bytes. If it fails, the transport may still use the memory.
func (x *exchanged) await(deadline chan struct{}, timeout time.Duration) ([]byte, error) {
	select {
	case err := <-x.ended:
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", x.peer, err)
		}
		got := bytes.Clone(elements(x.buf, 0, x.n))
		x.j.memory.Free(x.buf)
		return got, nil
	case <-deadline:
		return nil, fmt.Errorf("rank %d has not come within %v: %w", x.peer, timeout, device.ErrLost)
	}
}
