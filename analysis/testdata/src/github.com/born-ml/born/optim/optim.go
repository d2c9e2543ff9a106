// Package optim has some signatures of the package of this name.
package optim

import (
	"github.com/born-ml/born/internal/optim"
	"github.com/born-ml/born/internal/tensor"
)

type SGD[B tensor.Backend] = optim.SGD[B]
