// Package loopprint is a rule of asyncgen vet.
//
// # AT004: blocking print in a loop
//
// Formatting a tensor needs its value, so every print and every log of a
// tensor waits for the device, whether it says so or not: fmt and the loggers
// call the tensor's Format. In a loop that enqueues work, each iteration then
// waits for its own work before the next one can be enqueued.
//
// The rule reports prints of tensors, of things that visibly hold tensors, such
// as map[string]any{"loss": loss}, and of values that are read only to be
// printed, in a loop that computes them.
//
// WRONG
//
//	for i, b := range batches {
//		loss := step(b)
//		fmt.Println(i, loss) // waits for each batch
//	}
//
// RIGHT
//
//	for i, b := range batches {
//		loss := step(b)
//		if i%100 == 0 {
//			fmt.Println(i, loss)
//		}
//	}
//
// To print all of them, only later, mark the function //asyncgen:kernel.
//
// Silent: what AT001 is silent about; %T, %p and %i, which need no value;
// slog at level Debug; fields that are not exported, which fmt prints as addresses. A line for each
// parameter of a network, which a loop prints every so many steps, is of severity info.
//
// These count as prints, too:
//
//   - functions that pass their last arguments on to be printed, or print the elements of these;
//   - Execute of a template;
//   - functions that nobody knows, of a field or an interface, if their names and types are those of
//     a logger: logf(format, args...).
//
// An attribute of slog counts as the value that it wraps. What formats itself, by a method such as
// String, Error, MarshalJSON or LogValue, counts if the method reads a tensor, and the loop computes it
// or calls a function that sets it, in this package or another.
//
// Missed: formats that are not constant or have indexes or stars; arguments
// passed as one slice of another kind; other logging libraries.
//
// Fix: none. Users see how often a program prints, so it is for the author to decide.
package loopprint
