package scalars

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A sink is a file that numbers are written to. After an error it takes no more, and returns that error again.
type sink interface {
	write(e *entry, v float64) error
	flush() error
	close() error
}

// A file is a buffered file.
type file struct {
	f *os.File
	w *bufio.Writer
}

func newFile(f *os.File) file { return file{f, bufio.NewWriter(f)} }

// put writes the bytes of a record.
func (f *file) put(record []byte) error {
	_, err := f.w.Write(record)
	return err
}

func (f *file) flush() error { return f.w.Flush() }

func (f *file) close() error { return errors.Join(f.flush(), f.f.Close()) }

// stamp is the form of times in files of lines.
const stamp = "2006-01-02T15:04:05.000Z"

// header is the first line of CSV files.
const header = "step,name,value,time\n"

// openLines opens a file of lines for appending, of which the first begins with start. It removes half a line at the
// end.
func openLines(path, start string) (file, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return file{}, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return file{}, err
	}
	if err := seekEnd(f, start); err != nil {
		return file{}, errors.Join(fmt.Errorf("open %s: %w", path, err), f.Close())
	}
	return newFile(f), nil
}

// seekEnd moves to the end of the last whole line of f.
func seekEnd(f *os.File, start string) error {
	first := make([]byte, len(start))
	n, err := io.ReadFull(f, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if !strings.HasPrefix(start, string(first[:n])) {
		return fmt.Errorf("the file is not one of scalars: it begins with %q", first[:n])
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	end := size
	for block := make([]byte, 4096); end > 0; {
		from := max(0, end-int64(len(block)))
		part := block[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end = from + int64(i) + 1
			break
		}
		end = from
	}
	if end < size {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

// A csvFile is a sink of comma-separated values.
type csvFile struct{ file }

func openCSV(path string) (sink, error) {
	f, err := openLines(path, header)
	if err != nil {
		return nil, err
	}
	at, err := f.f.Seek(0, io.SeekCurrent)
	if err == nil && at == 0 {
		err = f.put([]byte(header))
	}
	if err != nil {
		return nil, errors.Join(err, f.f.Close())
	}
	return &csvFile{f}, nil
}

func (c *csvFile) write(e *entry, v float64) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write([]string{strconv.Itoa(e.step), e.name, strconv.FormatFloat(v, 'g', -1, e.number.Bits()), e.time.UTC().Format(stamp)}); err != nil {
		return err
	}
	w.Flush()
	return c.put(b.Bytes())
}

// A line is an object in a file of JSON lines.
type line struct {
	Step  int    `json:"step"`
	Name  string `json:"name"`
	Value any    `json:"value"`
	Time  string `json:"time"`
}

// A jsonFile is a sink of JSON lines.
type jsonFile struct{ file }

func openJSONLines(path string) (sink, error) {
	f, err := openLines(path, `{"step":`)
	return &jsonFile{f}, err
}

func (j *jsonFile) write(e *entry, v float64) error {
	text, err := json.Marshal(line{e.step, e.name, jsonNumber(v, e.number.Bits()), e.time.UTC().Format(stamp)})
	if err != nil {
		return err
	}
	return j.put(append(text, '\n'))
}

// jsonNumber returns what encoding/json writes for v.
func jsonNumber(v float64, bits int) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits))
}
