package asyncrt

// RunGoGenerate is what generated code says to the compiler when it is of
// another version than this package. Each file that asyncgen writes, in version
// 2 say, has the line
//
//	const _ = asyncrt.RunGoGenerate(2-asyncrt.OldestOutput) + asyncrt.RunGoGenerate(asyncrt.NewestOutput-2)
//
// As RunGoGenerate has no negative values, it does not compile unless 2 is
// between OldestOutput and NewestOutput, and the compiler's complaint names what
// is to be done. Nothing else needs the type.
type RunGoGenerate uint8

// The versions of generated code that this package does right.
//
// NewestOutput grows by one whenever asyncgen begins to write calls that the
// package did not have before: older releases can't run them. OldestOutput becomes
// NewestOutput when something that generated code calls is removed, or
// means something else than when that code was written.
const (
	OldestOutput = 1
	NewestOutput = 1
)
