package data_test

import (
	"fmt"
	"strings"

	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A line is found in a table.
func Example() {
	const text = "x,y\n0,1\n1,3\n2,5\n3,7\n4,9\n"
	table, err := data.ReadCSV(strings.NewReader(text), data.CSVOptions{Targets: []string{"y"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	loader := data.NewLoader(data.Pair(table.X, table.Y), 2, data.Options{Shuffle: true, Seed: 1})
	net := nn.Dense(1)
	opt := optim.SGD(net.Params(), 0.05)
	for range 200 {
		for b, err := range loader.All() {
			if err != nil {
				fmt.Println(err)
				return
			}
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
	}
	fmt.Printf("%.1f\n", net.Forward(tensor.From([]float32{10}, 1, 1)))
	// Output: [[21.0]]
}

// squares are numbers with their squares: a data set that is computed when it is needed.
type squares int

func (s squares) Len() int { return int(s) }

func (s squares) Shapes() (x, y []int) { return []int{1}, []int{1} }

func (s squares) At(i int, x, y []float32) error {
	x[0], y[0] = float32(i), float32(i*i)
	return nil
}

// A type of one's own needs three methods.
func ExampleDataset() {
	for b, err := range data.NewLoader(squares(5), 3).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(b.X.T(), b.Y.T())
	}
	// Output:
	// [[0. 1. 2.]] [[0. 1. 4.]]
	// [[3. 4.]] [[ 9. 16.]]
}

// A program that was stopped in the middle of an epoch goes on with the batches that it has not had.
func ExampleLoader_MarshalBinary() {
	show := func(loader *data.Loader, n int) {
		for b, err := range loader.All() {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(loader.Position(), b.X.T())
			if n--; n == 0 {
				break
			}
		}
	}
	options := data.Options{Shuffle: true, Seed: 1}
	loader := data.NewLoader(squares(9), 2, options)
	show(loader, 2)
	saved, err := loader.MarshalBinary()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(loader, 2)

	fmt.Println("again:")
	loader = data.NewLoader(squares(9), 2, options)
	if err := loader.UnmarshalBinary(saved); err != nil {
		fmt.Println(err)
		return
	}
	show(loader, 2)
	// Output:
	// {0 1 1} [[7. 2.]]
	// {0 2 1} [[8. 4.]]
	// {0 3 1} [[3. 5.]]
	// {0 4 1} [[1. 6.]]
	// again:
	// {0 3 1} [[3. 5.]]
	// {0 4 1} [[1. 6.]]
}

// Text in windows of four characters, each with the characters that follow.
func ExampleWindows() {
	const text = "to be or not"
	alphabet := data.NewAlphabet(text)
	ids, err := alphabet.Encode(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range data.NewLoader(data.Windows(ids, 4, 0), 1).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q %q\n", alphabet.Decode(b.X.Int64s()), alphabet.Decode(b.Y.Int64s()))
	}
	// Output:
	// "to b" "o be"
	// "e or" " or "
}

// Each sample is validated with once.
func ExampleFolds() {
	for train, valid := range data.Folds(squares(6), 3, 1) {
		fmt.Println(train.Index, valid.Index)
	}
	// Output:
	// [0 2 3 4] [1 5]
	// [0 1 2 5] [3 4]
	// [1 3 4 5] [0 2]
}
