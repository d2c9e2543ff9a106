package wire

// Live is how many bytes the transport works on.
func (j *Job) Live() int64 { return j.memory.Live() }

// Peak is the largest Live so far, and WindowBytes what the messages in one direction may have of it.
func (j *Job) Peak() int64 { return j.memory.Peak() }

const WindowBytes = windowBytes
