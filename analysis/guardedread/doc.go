// Package guardedread is a rule of asyncgen vet.
//
// # AT008: read in each iteration of a value used in few
//
// A condition such as i%100 == 0 around a print keeps the output short, but
// when the value is read before the condition, every iteration waits for the
// device all the same.
//
// The rule reports reads in a loop if their value is used only under conditions that hold rarely.
//
// WRONG
//
//	for i, b := range batches {
//		loss := step(b)
//		v := loss.Item() // waits for each batch
//		if i%100 == 0 {
//			fmt.Println(i, v)
//		}
//	}
//
// RIGHT
//
//	for i, b := range batches {
//		loss := step(b)
//		if i%100 == 0 {
//			v := loss.Item()
//			fmt.Println(i, v)
//		}
//	}
//
// Silent, and missed: what AT001 is silent about and misses.
//
// Fix: moves the statement with the read into the condition; all of a loop at once. It is offered
// if
//
//   - the statement does nothing else;
//   - the condition is an if statement of the same block, and nothing else uses the value;
//   - nothing between the two assigns the tensor's variable, which is local;
//   - the function reads no clock, as the wait may be what makes its timing right.
//
// Tensors never change, so the value is the same. If the computation failed, the panic comes where
// the value is used, and no longer in iterations that don't use it. WaitAll reports such failures
// in any case.
package guardedread
