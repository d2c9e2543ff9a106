package report

// Where is a regular expression for the part of a failed operation's text that says where it failed:
// the operation, its operands, the device and the line of the program that enqueued it. The cause
// follows. The texts of two programs that do the same on different lines differ only in this part.
//
//	Add float32[2 3] from float32[2 3] float32[3] on cpu, enqueued at /home/me/train.go:57:
const Where = `[^\s"]+ (?:bool|int64|float32|float64)(?:\[[\d ]*\])?(?: from)?(?: (?:bool|int64|float32|float64)(?:\[[\d ]*\])?)* on .+?(?:, enqueued at .+?:\d+)?: `
