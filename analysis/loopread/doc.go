// Package loopread is a rule of asyncgen vet.
//
// # AT001: blocking read in a loop
//
// A read such as Item or Float32s waits until the device has computed the
// tensor and sends the value to the host. In a loop that enqueues work, each
// iteration then waits for its own work: host and device take turns, and the
// queue, which is there to keep the device busy, never holds more than one
// iteration.
//
// The rule reports reads in a loop that enqueues what is read, when the value
// is kept, computed with or passed on. AT004 is for values that are only
// printed, AT005 for values that decide what the loop does next, AT008 for
// values that most iterations don't use.
//
// WRONG
//
//	for _, b := range batches {
//		loss := step(b)
//		total += loss.Item() // waits for each batch
//	}
//
// RIGHT
//
//	var losses []*tensor.Tensor
//	for _, b := range batches {
//		losses = append(losses, step(b))
//	}
//	for _, v := range tensor.Stack(0, losses...).Float32s() {
//		total += float64(v) // everything was enqueued, and came back in one read
//	}
//
// What only has to be recorded or shown is given to package scalars or progress as the tensor that it is:
// w.Add(step, "loss", loss) keeps a handle, and writes the value when it is known.
//
// The generator makes the same of the loop as it stands, with bounded memory:
// mark the function //asyncgen:kernel.
//
// Where the next tensor is made of the value, as of the characters of a text, these stay on the
// device, too: text = tensor.Concat(1, text, next) in the loop, and text.Int64s() behind it.
//
// The rule also reports operations that take a number from the device and wait for it in special
// cases: RowI64 and SliceI64 of a tracked tensor, and MulF64 and its like with integers. A function
// that is given to Later.Do waits for what it computes itself, since the backlog knows only of what
// it was asked to read. So do operations whose results have a size that depends on values, such as
// Unique and NonZero: they wait for their own work, even if the operand is finished. Optimizer.Rate
// waits if the device computes the rate, as after SetRateF64.
//
// Calls that write tensors or a model to a file, such as files.Save, are reads, too. Write every so many
// iterations, or in the background: Checkpoints.SaveAsync waits for no value.
//
// Silent:
//
//   - reads of tensors that the loop doesn't compute, or that are Ready;
//   - reads of a tensor after the iteration has read a result of it;
//   - reads under a condition that holds rarely: every third or hundredth iteration, chosen ones,
//     once a second, the first or the last iteration, on errors, when verbose. They are reported if
//     the loop takes all its steps of training under the same condition;
//   - loops over at most four things, such as what TopK(3, 0, …) has found, and loops that leave after
//     the read;
//   - outer loops, as over epochs: each iteration passes through data, or trains in a loop of its
//     own, or goes on with one computation for a number of steps. So is a loop over no data that
//     begins a computation of ten steps or more in each iteration, and any loop if they are fifty
//     or more. A function that goes over a loader, or takes as many steps as the loop says, is
//     such a pass, too. A loop over parameters, the steps of a sequence or the parts of a batch
//     inside doesn't make a loop an outer one;
//   - loops that repeat a method which changes its receiver many times, as restarts of a fit do, or
//     call an unknown function that fits or trains, by its name; loops over epochs, by the name of their number, that
//     hand items to an unknown function; loops whose counter doubles;
//   - loops over fits that don't depend on each other, as over sizes or folds. A fit is a function that
//     computes in a loop, each iteration from the one before, until a value that it reads ends it, or for
//     a number of iterations if it fits, solves or optimises something by its name;
//   - loops over episodes. An inner loop waits for the actions of each. It is another matter if the
//     value goes back into a tensor operation;
//   - reads that a message asks for, in a case of its own, of what other cases compute;
//   - functions that a rate limiter of the program calls now and then, and loops that a ticker
//     paces;
//   - reads of what an earlier iteration enqueued and left in a variable or a field, if the iteration
//     has enqueued work of its own before, and reads of what is several iterations old;
//   - loops that send each value to a client at once, with http.Flusher or on a net.Conn;
//   - functions marked //asyncgen:kernel, about which the generator speaks.
//
// Some loops can't run far ahead anyway. Their findings are of severity info, shown with
// -severity=info. Such a loop
//
//   - waits for input or the network, or answers a client on a channel that came with the question. It is a
//     warning where the input is a file or an io.Reader, the loop shows nothing meanwhile, and the value is
//     only kept or ends all in an error: nobody waits for it;
//   - does nothing but read what it receives and pass the value on or print it;
//   - receives tensors and doesn't train, and shows a text for each at once, or decides by each whether to
//     call an unknown function, as an alarm;
//   - goes over the folds of a cross-validation, by the name of the variable or its type;
//   - writes to a file for each thing what a loop inside has collected;
//   - takes data from a channel, and sends each result on or gives it to a function. Data that the function
//     itself sends, from a list to its workers, is no such input;
//   - gives each value to a channel or a function before it makes the next tensor of it, as a text is
//     generated word by word; or shows the word at once, on the terminal, to an io.Writer that the caller
//     gives or by Flush of a buffer, also if a function makes a text of it;
//   - puts the value into a struct of a list or heap that the host keeps in order, and a struct of that
//     says what comes next, as in a beam search or a queue of the hardest samples;
//   - gives the value to an unknown function, and computes with the number that this returns, as with
//     the outcome of an experiment, or goes on from other tensors if it says so; or reads what the experiment
//     needs at the place that the value says;
//   - goes over sizes and makes its tensors by them, or over the names in a map of networks or of lists of
//     tensors, and prints a line for each;
//   - has an unknown function draw or play the value, or gives it to one and makes its tensors of what
//     another measures, as a camera does;
//   - is in a function that talks to a person, by its name: interactive, chat, console;
//   - has no end, and sends values to somebody who may give up;
//   - gives the value, as a simulated world does with an action, to what makes its next tensor or
//     the numbers for it;
//   - is in asyncrt.AllowSync, where somebody has said that the wait is meant.
//
// A handler of HTTP that writes its answer is none of these: a read for each row of a request is as
// slow as anywhere, and a warning.
//
// Nor is a loop that takes messages without tensors from a channel one by one, and has a network compute
// the answer to each. It is a warning, as others wait for their turn: take all messages that have come in
// the meantime, and have the network compute them as one batch. It remains an info if the answer depends
// on tensors that the loop keeps of earlier messages, or if a message is a list of lists.
//
// A function that is not known, behind a variable, a field or an interface, is taken to enqueue the
// tensors that it returns, unless its name says that it gets, loads or reads them.
//
// Tensors that come from a channel, a parameter or a field count as pending. They don't if one
// goroutine sends them and another one reads them, and the package shows it: that is a good way to
// read.
//
// Missed: tensors that come from other channels, or from a call that may lead to several functions
// of the package which don't agree; loops in another function than the read, unless AT010 sees
// them.
//
// Fix: none. Where a value goes decides what is right.
package loopread
