// Package history is a rule of asyncgen vet.
//
// # AT023: history of every iteration that is kept
//
// A tensor that was computed from the value of a parameter remembers how, so that Backward can
// follow it: it has a history. A sum of such tensors remembers all of them. After total =
// total.Add(loss) in a loop, no tensor that a gradient of some iteration would need is freed before
// total is. The same goes for a list of such tensors, and for a state that each iteration computes
// from the one before.
//
// The rule reports histories that are kept, if the program only ever reads values from what keeps
// them:
//
//   - a sum, or the result of another operation, that a loop keeps beyond the iteration, if what is
//     added has a history;
//   - a tensor that each iteration computes from its value before, like the state of a decoder, or that is tracked
//     before the loop and changed in it; also in a field, at the function that does so;
//   - tensors that are put into a list, or into a field of a struct that outlives the iteration;
//   - sums and lists in fields, at the call of the function that adds to them, if the tensors come
//     from its callers;
//   - lists that a function is given, and returns with another tensor.
//
// A state that a step of training hands to the next one with its history is reported although it is
// differentiated: each step goes through the history of all steps before. The state is a tensor or a
// struct of tensors, and nothing detaches it.
//
// In a loop with steps of training it reports averages of parameters in any list, whoever reads the
// list: the steps change what a gradient would be of.
//
// It also reports what networks compute whose gradients nothing uses:
//
//   - networks that follow another one, as that for the targets in reinforcement learning: the package
//     sets their parameters to those of the other network, or to averages of both, gives them to no
//     optimiser, and differentiates what they compute;
//   - networks that a step differentiates and whose optimisers don't have them, as the generator of a
//     GAN when its critic is trained. Of several steps in a function, the one counts that is given the
//     loss. A network that stands between the loss and the one that is
//     trained has to be differentiated;
//   - networks in the target of the loss that trains them: their result for the next state is added to
//     a reward, and the loss compares with the sum;
//   - fields of a module with the tag nn:"-", by Forward of the module;
//   - networks in a loop over data that only reads values of their results, if the package trains them
//     or has a frozen copy. That costs the history, and Dropout is at work there.
//
// If the loop calls Backward or Minimize on the part of a sum, that releases most of the history,
// and a small record is left of each iteration. This is reported as well: it grows for as long as
// the loop runs, and Detach costs nothing. In a list it is not reported, since the list grows by a
// handle for each iteration anyway.
//
// WRONG
//
//	for _, b := range test {
//		total = total.Add(model.Loss(b))
//	}
//	fmt.Println(total.Item())
//
// RIGHT
//
//	for _, b := range test {
//		total = total.Add(model.Loss(b).Detach())
//	}
//	fmt.Println(total.Item())
//
// Better still is nn.Frozen for all that only evaluates.
//
// A moving average, which scales the sum by numbers before it adds the part, is a sum, too.
//
// Silent:
//
//   - networks of layers;
//   - what is passed on, returned, stored or differentiated, as in the accumulation of gradients,
//     in networks that unroll a loop, and in descents that are differentiated themselves;
//   - states that some iterations detach;
//   - results of comparisons, of arg max and of other operations that no gradient passes;
//   - sums over the parts of a model, which are few;
//   - what a function computes from the elements of a list that it is given: its callers have the list.
//
// Only an info: what a function puts into a list of its own, to read it after the loop, if the layers
// are given by others, who may have frozen them. The package neither makes nor trains them.
//
// The methods of what nn.Frozen returns bring in no history, whatever its type. A layer of type
// nn.Module is taken to have parameters, unless the package makes it Frozen, passes
// a frozen one to the function, or calls it frozen. A loss that is given to an exported method is
// taken to have a history, if nothing in the package calls the method. What a meter, metric or gauge by its
// name holds in an exported field is taken to be read only.
//
// Missed: interfaces of the user; lists or states that an exported function returns; results of
// unknown functions.
//
// Fix: none. Where to detach is for the author to say.
package history
