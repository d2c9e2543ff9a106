// Package roundtrip is a rule of asyncgen vet.
//
// # AT003: value read to be given back to the device
//
// A value that the host reads only to make an operand of it goes from the
// device to the host and back, and the device idles meanwhile: the operation
// can't be enqueued before the host knows the value.
//
// The rule reports reads in a loop whose value, perhaps after some arithmetic, becomes an operand
// of a tensor operation or the data of a new tensor. The loop usually computes what is read. It
// need not if it reads the elements of a list one by one, or fields of them, or if whole tensors go
// by way of the host: all elements are read, perhaps changed there, and another tensor is made of
// them, by the loop or by a function, or of what a function of another library makes of them.
//
// A function that maps tensors, or lists of numbers, to tensors is reported outside of loops, too, if
// it reads a number and does nothing with it but to compute with tensors by operations such as
// MulScalar, or if it reads all elements, goes through them with arithmetic or sorts them, and returns
// a tensor of them or of a list that it computes from them place by place. A function that sets a parameter
// of a model to such a tensor counts like one that returns it. It is reported as well if
// it only makes a tensor of the elements, as on another device, or adds those of several tensors up
// for one. So is one that reads numbers which the device draws for it, whatever becomes of them, unless
// it waits in a loop as well. Whoever calls it expects that it returns at once. A function that takes a
// step of training is reported if a number does nothing but go back.
//
// Copies between devices are enqueued and nobody waits for them, but one device waits for the other. So the rule
// reports x.To(cpu).Round().To(x.Device()), too, in loops and in functions that are given tensors: what is
// computed of a tensor elsewhere and comes back to where the tensor is.
//
// The method Forward of a module runs in each step of what has the module, so a read there is
// reported without a loop: by this rule if its value goes back, by AT005 if it decides something,
// else by AT012.
//
// WRONG
//
//	for range steps {
//		x = m.MatMul(x)
//		x = x.MulScalar(1 / x.Norm().Item()) // waits in each iteration
//	}
//
// RIGHT
//
//	for range steps {
//		x = m.MatMul(x)
//		x = x.Div(x.Norm()) // the host never needs the number
//	}
//
// A float64 keeps its 53 bits on the device as a tensor.F64: x.MulF64(c) does
// what x.MulScalar does with the value of c, and x.Norm().F64() is a number
// that nobody has waited for. An index is a tensor for Take. The generator
// does all that: mark the function //asyncgen:kernel.
//
// Silent: what AT001 is silent about; values that decide what the loop does next, for which see
// AT005; values that only become sizes, for which see AT026.
//
// Missed: values that reach an operation through a function of the user that does more than read, a
// container or a field.
//
// Fix: none. An operation on tensors rounds to the type of its operands, and arithmetic of the host
// doesn't, so the two may differ in the last bits.
package roundtrip
