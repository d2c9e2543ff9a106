package scalars

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Read returns what Writers have written to a CSV file or a file of JSON lines, in the order in which the names first
// appear. Where the steps of a name go back or stay, a run went on from an earlier state: what was recorded of this
// step and later ones is left out. Half a line at the end, which a crash has left, is ignored. Any other line that a
// Writer doesn't write is an error, with its number; what was read before is returned with it.
//
//asyncgen:api control
func Read(path string) ([]Series, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scalars: %w", err)
	}
	defer f.Close()
	var list []Series
	at := make(map[string]int)
	r := bufio.NewReader(f)
	for number := 1; ; number++ {
		text, err := r.ReadString('\n')
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, fmt.Errorf("scalars: %w", err)
		}
		if number == 1 && text == header {
			continue
		}
		step, name, value, err := parseLine(text)
		if err != nil {
			return list, fmt.Errorf("scalars: %s:%d: %w", path, number, err)
		}
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, Series{Name: name})
		}
		s := &list[i]
		n := len(s.Steps)
		for n > 0 && s.Steps[n-1] >= step {
			n--
		}
		s.Steps, s.Values = append(s.Steps[:n], step), append(s.Values[:n], value)
	}
}

// parseLine reads a line of either kind of file.
func parseLine(text string) (step int, name string, value float64, err error) {
	if strings.HasPrefix(text, "{") {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return 0, "", 0, err
		}
		value, err = strconv.ParseFloat(fmt.Sprint(l.Value), 64)
		return l.Step, l.Name, value, err
	}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return 0, "", 0, err
	}
	if len(fields) != 4 {
		return 0, "", 0, errors.New("not four fields: step,name,value,time")
	}
	if step, err = strconv.Atoi(fields[0]); err != nil {
		return 0, "", 0, fmt.Errorf("the step is %q, want an integer", fields[0])
	}
	if value, err = strconv.ParseFloat(fields[2], 64); err != nil {
		return 0, "", 0, fmt.Errorf("the value is %q, want a number", fields[2])
	}
	return step, fields[1], value, nil
}
