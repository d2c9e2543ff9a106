package report

// Where is a regular expression for what the text of a failed operation says about where it was:
// the operation, its operands, the device and the line of the program that enqueued it. The cause
// follows. Two programs that do the same in other places differ there and nowhere else.
//
//	Add float32[2 3] from float32[2 3] float32[3] on cpu, enqueued at /home/me/train.go:57:
const Where = `[^\s"]+ (?:bool|int64|float32|float64)(?:\[[\d ]*\])?(?: from)?(?: (?:bool|int64|float32|float64)(?:\[[\d ]*\])?)* on .+?(?:, enqueued at .+?:\d+)?: `
