package asyncrt

// RunGoGenerate makes generated code fail to compile if its version is not one that this package supports. Each
// file that asyncgen writes, in version 2 say, has the line
//
//	const _ = asyncrt.RunGoGenerate(2-asyncrt.OldestOutput) + asyncrt.RunGoGenerate(asyncrt.NewestOutput-2)
//
// RunGoGenerate has no negative values, so the line compiles only if 2 is between OldestOutput and NewestOutput.
// Otherwise the compiler's message names the type, and so says what to do. Nothing else needs the type.
type RunGoGenerate uint8

// The versions of generated code that this package supports.
//
// NewestOutput grows by one whenever asyncgen begins to write calls that the package did not have before: older
// releases don't have them. OldestOutput becomes NewestOutput when something that generated code calls is removed
// or changes its meaning.
const (
	OldestOutput = 1
	NewestOutput = 2
)
