package data

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// CSVOptions say what the columns of a CSV file are. Columns are named by what is in their first line, or, if NoHeader
// is set, by their number: "0", "1". Each field may be zero.
type CSVOptions struct {
	Comma    rune     // between fields; 0 stands for a comma
	NoHeader bool     // the first line is data
	Columns  []string // the inputs; nil stands for all that are neither Targets nor Class, as they come
	Targets  []string // numbers to predict
	Class    string   // the label to predict
}

// A Table is what [ReadCSV] has found in a file. The rows of each Array are the lines.
type Table struct {
	X       Array[float32] // the inputs, one column each
	Names   []string       // of the columns of X
	Y       Array[float32] // the targets, one column each
	Class   Array[int64]   // the number of each label in Classes, with one axis
	Classes []string       // the labels, each once: in the order of numbers if all are integers, else of bytes
}

// ReadCSVFile is [ReadCSV] of a file. Errors name the file.
//
//asyncgen:api control
func ReadCSVFile(name string, options ...CSVOptions) (*Table, error) {
	o := only("ReadCSVFile", options)
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	t, err := readCSV(f, o)
	if err != nil {
		return nil, fmt.Errorf("data: read %s: %w", name, err)
	}
	return t, nil
}

// ReadCSV reads lines of numbers, separated by commas. Blanks around a number do not matter; each must be one that
// float32 has, if rounded. If one is not, the error names line and column.
//
//	t, err := data.ReadCSV(r, data.CSVOptions{Class: "species"})
//	…
//	set := data.Pair(t.X, t.Class)
//
//asyncgen:api control
func ReadCSV(r io.Reader, options ...CSVOptions) (*Table, error) {
	t, err := readCSV(r, only("ReadCSV", options))
	if err != nil {
		return nil, fmt.Errorf("data: read CSV: %w", err)
	}
	return t, nil
}

func readCSV(r io.Reader, o CSVOptions) (*Table, error) {
	b := bufio.NewReader(r)
	if mark, _ := b.Peek(3); string(mark) == "\ufeff" { // spreadsheets begin files with it
		_, _ = b.Discard(3)
	}
	in := csv.NewReader(b)
	in.Comma, in.ReuseRecord = cmp.Or(o.Comma, ','), true
	head, err := in.Read()
	if err == io.EOF {
		return nil, errors.New("it is empty")
	} else if err != nil {
		return nil, err
	}
	names := make([]string, len(head))
	for i := range names {
		if names[i] = strings.TrimSpace(head[i]); o.NoHeader {
			names[i] = strconv.Itoa(i)
		} else if strings.Contains(names[i], "\r") {
			return nil, fmt.Errorf("the name of column %d has a carriage return: lines must end with a line feed", i)
		}
	}
	t, class, err := newTable(names, o)
	if err != nil {
		return nil, err
	}
	var labels []string
	line := func(fields []string) error {
		for _, a := range []struct {
			columns []int
			to      *Array[float32]
		}{{t.x, &t.X}, {t.y, &t.Y}} {
			for _, c := range a.columns {
				v, err := strconv.ParseFloat(strings.TrimSpace(fields[c]), 32)
				if err != nil {
					line, _ := in.FieldPos(c)
					hint := ""
					if o.Class == "" && strings.TrimSpace(fields[c]) != "" && errors.Is(err, strconv.ErrSyntax) {
						hint = ": CSVOptions.Class names a column of labels"
					}
					return fmt.Errorf("line %d, column %q: %q is no number that float32 has%s", line, shown(names[c]), shown(fields[c]), hint)
				}
				a.to.Data = append(a.to.Data, float32(v))
			}
			a.to.Shape[0]++
		}
		if class >= 0 {
			labels = append(labels, strings.Clone(fields[class]))
		}
		return nil
	}
	if o.NoHeader {
		if err := line(head); err != nil {
			return nil, err
		}
	}
	for {
		fields, err := in.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if err := line(fields); err != nil {
			return nil, err
		}
	}
	if class >= 0 {
		t.Classes, t.Class = numbered(labels)
	}
	return &t.Table, nil
}

const (
	maxShown  = 100 // bytes of a text from a file in an error
	maxListed = 20  // names of columns in an error
)

// shown is what an error shows of a text from a file.
func shown(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "..."
	}
	return text
}

// columns are those of a Table in its file.
type columns struct {
	Table
	x, y []int
}

// newTable returns a Table without lines, and the column of the class, or -1.
func newTable(names []string, o CSVOptions) (*columns, int, error) {
	t := &columns{}
	find := func(name string) (int, error) {
		i := slices.Index(names, name)
		if i < 0 {
			var list []string
			for _, n := range names[:min(len(names), maxListed)] {
				list = append(list, shown(n))
			}
			return 0, fmt.Errorf("there is no column %q among the %d: %q", name, len(names), list)
		}
		if slices.Contains(names[i+1:], name) {
			return 0, fmt.Errorf("there are two columns %q", name)
		}
		return i, nil
	}
	class := -1
	if o.Class != "" {
		c, err := find(o.Class)
		if err != nil {
			return nil, 0, err
		}
		class = c
	}
	for _, name := range o.Targets {
		c, err := find(name)
		if err != nil {
			return nil, 0, err
		}
		t.y = append(t.y, c)
	}
	for _, name := range o.Columns {
		c, err := find(name)
		if err != nil {
			return nil, 0, err
		}
		t.x = append(t.x, c)
	}
	if o.Columns == nil {
		for c := range names {
			if c != class && !slices.Contains(t.y, c) {
				t.x = append(t.x, c)
			}
		}
	}
	for _, c := range t.x {
		t.Names = append(t.Names, names[c])
	}
	t.X.Shape, t.Y.Shape = []int{0, len(t.x)}, []int{0, len(t.y)}
	return t, class, nil
}

// numbered returns the labels, each once, and the number of each of the given ones.
func numbered(labels []string) (classes []string, numbers Array[int64]) {
	classes = slices.Clone(labels)
	slices.Sort(classes)
	classes = slices.Compact(classes)
	isInt := true
	for _, c := range classes {
		_, err := strconv.ParseInt(c, 10, 64)
		isInt = isInt && err == nil
	}
	if isInt {
		slices.SortStableFunc(classes, func(a, b string) int {
			x, _ := strconv.ParseInt(a, 10, 64)
			y, _ := strconv.ParseInt(b, 10, 64)
			return cmp.Compare(x, y)
		})
	}
	number := make(map[string]int64, len(classes))
	for i, c := range classes {
		number[c] = int64(i)
	}
	numbers = Array[int64]{Data: make([]int64, len(labels)), Shape: []int{len(labels)}}
	for i, l := range labels {
		numbers.Data[i] = number[l]
	}
	return classes, numbers
}
