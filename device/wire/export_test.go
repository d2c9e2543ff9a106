package wire

// Live is how many bytes the transport works on.
func (j *Job) Live() int64 { return j.memory.Live() }
