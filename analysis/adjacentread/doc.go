// Package adjacentread is a rule of asyncgen vet.
//
// # AT007: reads that could be one
//
// Each read is a round trip to the device. Numbers that are read one after the other could come
// back in one read, and a value that was read already need not be read again.
//
// The rule reports loops that enqueue nothing, and for each tensor of a list, map or iterator read
// a number or append all numbers to a list, or print each of a list of numbers such as tensor.F64.
// Some forms of such loops are less visible:
//
//   - a call of a function with the loop, where only the call tells that it reads: it passes the
//     method, as in Map(losses, (*tensor.Tensor).Item), or a type whose method reads;
//   - a call of a method that reads the element of a list or map in a field, for each key of it;
//   - a loop that prints each tensor of a list to have a key of a map, to add it to a hash, or in a
//     function that makes a key, as its name tells.
//
// A statement outside of loops is reported if it returns or assigns three or more numbers that it
// computes and reads one by one.
//
// The first of these reads waits for most of the work, and each of the others is a copy of a few
// bytes. So the findings are of severity info, shown with -severity=info: reads after all work, as
// AT001 recommends them, or once per epoch cost little. They are warnings where more is to be
// enqueued after them:
//
//   - in each iteration of a loop over batches or steps, in which AT001 would report a read of what
//     the iteration computes, or in a function that is called there;
//   - if the function computes with the numbers on the device.
//
// In loops the rule also reports two reads of one number each, one right after the other, if the
// first does not decide about the second; and a second read of the same tensor in one iteration.
// The second of two reads rarely waits long, so these findings are infos, too.
//
// WRONG
//
//	for _, b := range batches {
//		opt.Minimize(model.Loss(b))
//		for _, n := range norms {
//			sum += n.Item() // a read for each, in each step
//		}
//	}
//
//	total += loss.Item()
//	right += hits.Item()
//	fmt.Println(loss.Item())
//
// RIGHT
//
//	for _, b := range batches {
//		opt.Minimize(model.Loss(b))
//		all = append(all, norms...)
//	}
//	for _, v := range tensor.Stack(0, all...).Float32s() {
//		sum += float64(v)
//	}
//
//	both := tensor.Stack(0, loss, hits).Float32s()
//	total += float64(both[0])
//	right += float64(both[1])
//	fmt.Println(both[0])
//
// Silent:
//
//   - what AT001 is silent about, except for reading the same tensor again;
//   - two reads with something between them that depends on the first;
//   - lists of at most four tensors, of tensors made of host data, or of tensors that a Wait before
//     the loop waits for;
//   - loops that a read can end, and loops on a goroutine of their own;
//   - tensors from channels, and what is left in a queue from whose front the program takes;
//   - reads of numbers such as tensor.F64, which can't be stacked as they are.
//
// Missed: reads in different branches; lists that a loop with other work reads; reads of more than
// one number, since tensors of different shapes can't be stacked.
//
// Fix: none. Tensors of different types or devices can't be stacked.
package adjacentread
