package scalars

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// An events is a sink that TensorBoard reads: a file of records, as TensorFlow frames them. Each holds a message
// Event of TensorFlow's event.proto, in the encoding of protocol buffers. A record is
//
//	uint64 length, uint32 masked CRC of it, data, uint32 masked CRC of the data
//
// with the lowest byte first. A crash leaves half a record at most, at the end, which readers ignore.
type events struct{ file }

// files counts the event files of the process, so that each has a name of its own.
var files atomic.Int64

func openEvents(dir string, resume int) (sink, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	now := time.Now()
	// TensorBoard reads the files of a folder in the order of their names.
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d", now.Unix(), filepath.Base(host), os.Getpid(), files.Add(1)-1)
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	e := &events{newFile(f)}
	err = e.put(record(versionEvent(now)))
	if err == nil && resume > 0 {
		err = e.put(record(startEvent(now, resume)))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return e, nil
}

func (e *events) write(n *entry, v float64) error {
	return e.put(record(scalarEvent(n.time, n.step, n.name, float32(v))))
}

// versionEvent is the first event of a file.
func versionEvent(t time.Time) []byte {
	return event(t, 0, bytesField(nil, 3, "brain.Event:2")) // file_version
}

// startEvent tells readers to forget the events of this step and later ones in files before.
func startEvent(t time.Time, step int) []byte {
	const start = "\x08\x01"                         // SessionLog: status START
	return event(t, step, bytesField(nil, 7, start)) // session_log
}

// scalarEvent is an event with a number.
func scalarEvent(t time.Time, step int, name string, v float32) []byte {
	value := bytesField(nil, 1, name) // Summary.Value: tag
	value = append(value, 2<<3|5)     // simple_value
	value = binary.LittleEndian.AppendUint32(value, math.Float32bits(v))
	summary := bytesField(nil, 1, value) // Summary: value
	return event(t, step, bytesField(nil, 5, summary))
}

// event encodes an Event: wall_time, step, and the fields in rest.
func event(t time.Time, step int, rest []byte) []byte {
	b := append([]byte(nil), 1<<3|1)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(t.UnixMicro())/1e6))
	if step != 0 {
		b = append(b, 2<<3|0)
		b = binary.AppendUvarint(b, uint64(step))
	}
	return append(b, rest...)
}

// bytesField appends a field with a length: a text, or a message.
func bytesField[T string | []byte](b []byte, field byte, data T) []byte {
	b = append(b, field<<3|2)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

// record frames data.
func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the CRC-32C of data as TensorFlow stores it: rotated, and with an offset, since to compute the CRC of
// data that holds its own CRC is no good check.
func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
