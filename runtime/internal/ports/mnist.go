package ports

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An MNIST is a small network of convolutions for digits of 28 by 28 elements.
type MNIST struct{ conv1, conv2, dropout1, dropout2, fc1, fc2 nn.Module }

// NewMNIST returns the model of mnist. Its dropouts are 0.25 and 0.5.
func NewMNIST(dropout1, dropout2 float64) *MNIST {
	conv := func(out int) nn.Module { return nn.Conv2D(out, tensor.Both(3), tensor.Conv{}) }
	return &MNIST{conv(32), conv(64), nn.Dropout(dropout1), nn.Dropout(dropout2), nn.Dense(128), nn.Dense(10)}
}

// Forward returns logarithms of probabilities [N 10] of images [N 1 28 28].
func (m *MNIST) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = m.conv2.Forward(m.conv1.Forward(x).ReLU()).ReLU()
	x = m.dropout1.Forward(x.MaxPool2D(tensor.Pool{Window: tensor.Both(2)}))
	x = m.fc1.Forward(x.Reshape(x.Dim(0), x.Size()/x.Dim(0))).ReLU()
	return m.fc2.Forward(m.dropout2.Forward(x)).LogSoftmax(1)
}

// Params implements [nn.Module].
func (m *MNIST) Params() []*nn.Param { return nn.Params(m) }

// Train does a step for each batch. It does not wait.
func (m *MNIST) Train(opt *optim.Optimizer, images, labels []*tensor.Tensor) {
	for i, x := range images {
		opt.Minimize(nn.NLLLoss(m.Forward(x), labels[i]))
	}
}

// Test returns the sum of the losses of all images, and how many of them are recognised. It does not wait.
func (m *MNIST) Test(images, labels []*tensor.Tensor) (loss, right *tensor.Tensor) {
	frozen := nn.Frozen(m)
	loss, right = tensor.Scalar(0).As(images[0].DType()), tensor.FullInt(0)
	for i, x := range images {
		logs := frozen.Forward(x)
		loss = loss.Add(nn.Loss{Reduction: nn.Sum}.NLL(logs, labels[i]))
		right = right.Add(logs.ArgMax(1).Eq(labels[i]).As(tensor.Int64).Sum())
	}
	return loss, right
}
