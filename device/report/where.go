package report

// Where is a regular expression for the part of a failed operation's text that says where it failed:
// the operation, its operands, the device and the line of the program that enqueued it. The cause
// follows. The texts of two programs that do the same on different lines differ only in this part.
//
//	Add float32[2 3] from float32[2 3] float32[3] on cpu, enqueued at /home/me/train.go:57:
const Where = `(?:[^\s":]+ )*[^\s"]+ ` + operand + `(?: from)?(?: ` + operand + `)* on .+?(?:, enqueued at .+?:\d+)?: `

// operand is an element type, and perhaps a shape.
const operand = `(?:bool|uint8|int32|int64|float16|bfloat16|float32|float64)(?:\[[\d ]*\])?`
