package loopcall

import (
	"cmp"
	"fmt"
	"log"
	"slices"

	"gauges"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Types of other packages that keep what they are given, and read it later.

func lastValues(m *gauges.Last, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		m.Update(x.MulScalar(2))
		sum += m.Value() // want `m.Value waits for the device in each iteration`
	}
	return sum
}

func sumsOf(m *gauges.Sum, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		m.Update(x.MulScalar(2))
		sum += m.Value() // want `m.Value waits for the device in each iteration`
	}
	return sum
}

func anyMeter(m gauges.Meter, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		m.Update(x.MulScalar(2))
		sum += m.Value() // want `m.Value waits for the device in each iteration`
	}
	return sum
}

// Not all of the package's types wait.
func names(m gauges.Namer, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		x.MulScalar(2)
		sum += m.Name()
	}
	return sum
}

// What a constructor was given is there.
func tableRows(t *gauges.Table, xs []*tensor.Tensor) (sum float64) {
	for i, x := range xs {
		x.MulScalar(2)
		sum += t.At(i)
	}
	return sum
}

func notedAll(xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		gauges.Note(x.MulScalar(2))
		sum += gauges.Noted() // want `gauges.Noted waits for the device in each iteration`
	}
	return sum
}

// Nobody else can call its method.
func onlyThere(xs []*tensor.Tensor) (sum float64) {
	o := gauges.NewOnly()
	for _, x := range xs {
		x.MulScalar(2)
		sum += o.Value()
	}
	return sum
}

// The same within one package.

type keeper struct{ last *tensor.Tensor }

func (k *keeper) keep(t *tensor.Tensor) { k.last = t.Detach() }
func (k *keeper) value() float64        { return k.last.Item() }

type fitted struct{ *keeper }

func (f *fitted) fit(x *tensor.Tensor) { f.keep(x.MulScalar(2)) }

func fits(f *fitted, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		f.fit(x)
		sum += f.value() // want `f.value waits for the device in each iteration`
	}
	return sum
}

func since(f *fitted, xs []*tensor.Tensor) {
	for f.last == nil || f.value() > 1 { // want `f.value waits for the device in each iteration`
		f.fit(xs[0])
	}
}

// Lists and maps with methods that keep what they are given.
func inLists(xs []*tensor.Tensor) (sum float64) {
	var l, before gauges.Losses
	before.Add(xs[0].MulScalar(3))
	c := gauges.Curves{}
	for _, x := range xs {
		l.Add(x.MulScalar(2))
		sum += l.Final() // want `l.Final waits for the device in each iteration`
		c.Add("loss", x.MulScalar(2))
		sum += c.Last("loss") // want `c.Last waits for the device in each iteration`
		before.With(x.MulScalar(2))
		sum += before.Final()
	}
	return sum + l.Final()
}

func variables(xs []*tensor.Tensor) (sum float64) {
	gauges.Mine = func(t *tensor.Tensor) float64 { return 1 }
	if len(xs) > 10 {
		gauges.Mine = func(t *tensor.Tensor) float64 { return 2 }
	}
	for _, x := range xs {
		sum += gauges.Log(x.MulScalar(2)) // want `gauges.Log waits for the device in each iteration`
		sum += gauges.Next(x.MulScalar(2)) + gauges.Mine(x.MulScalar(2))
	}
	return sum
}

// A variable that init of its package has set.
func alarms(xs []*tensor.Tensor) (n int) {
	for _, x := range xs {
		y := x.MulScalar(2)
		if gauges.Alarm(y) { // want `gauges.Alarm waits for the device in each iteration`
			n++
		}
		if gauges.Late(y) {
			n++
		}
	}
	return n
}

// The second of two functions that a call has returned.
func smoothed(xs []*tensor.Tensor) (n int) {
	add, value := gauges.Smooth()
	for _, x := range xs {
		add(x.MulScalar(2))
		if value() > 1 { // want `value waits for the device in each iteration`
			n++
		}
	}
	return n
}

// Only the first of three waits.
func counted(xs []*tensor.Tensor) (n int) {
	value, add, count := gauges.Count()
	for _, x := range xs {
		add(x.MulScalar(2))
		n += count()
	}
	for _, x := range xs {
		add(x.MulScalar(2))
		n += int(value()) // want `value waits for the device in each iteration`
	}
	return n
}

// Some metrics read what they are given, others what they compute of it.
func anyMetric(m gauges.Metric, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		sum += m.Of(x.MulScalar(2), x) // want `m.Of waits for the device in each iteration`
	}
	return sum
}

func metrics(ms []gauges.Metric, losses []gauges.Loss, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		y := x.MulScalar(2)
		for _, m := range ms {
			sum += m.Of(y, x) // want `m.Of waits for the device in each iteration`
		}
		for _, l := range losses {
			sum += l.Loss(y, x)
		}
	}
	return sum
}

// A fit of many steps in each iteration; the others have no loop that is known.
func numbersOf(c *gauges.Last, x *tensor.Tensor, xs []*tensor.Tensor) (list []float64) {
	for n := range 100 {
		c.Update(gauges.Fit(x.MulScalar(float64(n)), n))
		list = append(list, c.Value())
	}
	for n := range 100 {
		c.Update(gauges.Filter(x.MulScalar(float64(n)), n))
		list = append(list, c.Value()) // want `c.Value waits for the device in each iteration`
	}
	for range 100 {
		c.Update(gauges.Fits(xs))
		list = append(list, c.Value()) // want `c.Value waits for the device in each iteration`
	}
	return list
}

// What a constructor was given in the loop is fresh, and what it was given before is not.
func itemsOf(xs []*tensor.Tensor, ready *tensor.Tensor) (sum float64) {
	for i, x := range xs {
		item, raw := gauges.NewItem(i, x.MulScalar(2)), gauges.NewItem(i, ready)
		sum += item.Score() // want `item.Score waits for the device in each iteration`
		sum += raw.Score()
	}
	return sum
}

func sortsItems(items []*gauges.Item) {
	slices.SortFunc(items, func(a, b *gauges.Item) int {
		return cmp.Compare(a.Score(), b.Score()) // want `a.Score waits for the device in each comparison`
	})
	slices.SortFunc(items, func(a, b *gauges.Item) int { return cmp.Compare(a.ID, b.ID) })
}

// Values that format themselves by what they compute.
func shown(s *gauges.Scale, l *gauges.Label, seen *gauges.Seen, xs []*tensor.Tensor) {
	for i, x := range xs {
		x.MulScalar(2)
		fmt.Println(i, s) // want `fmt.Println waits for the device in each iteration`
		fmt.Println(i, l)
		fmt.Println(i, seen)
		fmt.Printf("%p", s)
		log.Print("scale", s) // want `log.Print waits for the device in each iteration`
	}
	fmt.Println(s)
}

// Functions in fields of other packages' structs.
func stepped(m *gauges.Model, xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		y := x.MulScalar(2)
		sum += m.Ready(y) + m.Other(y)
		sum += m.Step(y) // want `m.Step waits for the device in each iteration`
	}
	return sum
}

func made(xs []*tensor.Tensor) (sum float64) {
	m := gauges.NewModel(xs[0])
	for _, x := range xs {
		sum += m.Step(x.MulScalar(2)) // want `m.Step waits for the device in each iteration`
	}
	return sum
}
