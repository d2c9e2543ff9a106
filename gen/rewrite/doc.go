// Package rewrite decides what of a function runs later. It changes no text: its result is a plan, or the reasons
// why there is none.
//
//	for i, x := range xs {             for i, x := range xs {
//		loss := w.Mul(x).Sum()         	loss := w.Mul(x).Sum()
//		w = w.Sub(x.MulScalar(0.1))    	w = w.Sub(x.MulScalar(0.1))
//		l := loss.Item()               	lossAt := later.Read(loss)
//		total += l                     	later.Do(func() {
//		if i%100 == 0 {                		l := lossAt.Item()
//			fmt.Println(i, l)          		total += l
//		}                              		if i%100 == 0 {
//	}                                  			fmt.Println(i, l)
//	                                   		}
//	                                   	})
//	                                   }
//	                                   later.Flush()
//
// The loop is divided into units: a simple statement is one, and so is what stands before the bodies of a compound
// one, such as the condition i%100 == 0. It may become one unit with all that is in it. A unit runs
//
//   - ahead, as it is written. So do the first two, which only put work on the device's queue;
//   - late, when the values that it needs have arrived. l := loss.Item() looks at a value, so it is late, and all
//     that depends on it: total += l and the print. Its tensor is still computed in its place, and lossAt is a handle
//     to it: each late unit has such a part that runs ahead, its Ahead;
//   - now, in its place, with everything before it done first. A unit has to if it should be late and can't, because
//     of an obstacle: if l < 1 { w = model.Forward(w) } decides what the device does next. Then loss.Item() is
//     refused, with a remark that says why. So is a unit of which nobody knows what it does, and before a return or a
//     jump that leaves the loop everything is done as well.
//
// Which it is follows from what units read and write. An attempt looks for it in rounds. In each, the seeds are the
// reads, and what others can see, such as a print or a field that is shared: if a value makes the program panic, that
// must not have happened yet. What depends on seeds is late, through any number of units and from one iteration to
// the next, in the order of the program. Where one of these has an obstacle, or is part of a compound statement that
// has to go as a whole, that is noted, and the next round begins, until one notes nothing.
//
// Then late units that are neighbours become a group, which is an entry of the backlog: the function that Do is
// given. The loop with its groups is a region. Before and after it, and before each unit that runs now, the backlog
// is empty. A group has copies of variables that the loop goes on to change, as i would be if it were declared
// before the loop. What a group declares and others use is hoisted: declared in front of it.
//
// An exit is a late unit that may end the loop, such as if l < tol { break }. What runs ahead of its value runs past
// it, perhaps in vain, so it must be proved that this does no harm, in package past, and what it changes is given
// back. If that can't be proved, what does harm in some iterations only runs now. Else Iterate, of the runtime, runs
// each iteration and drops a panic past the end. If that is not enough, all exits of the loop wait for their values.
// See contain.go. ways.go lays out how the loop is left, undo.go lets memory that others see change ahead and be given
// back, and BreakIf, of the runtime, takes the exit.
//
// An attempt is of use if it makes something come later that waited. If it is not, the planner tries the loop in
// other forms, and at last the loops in it one by one: also if the loop would wait for what ends one of them, and that
// one may run past its end. Of several versions of a function it takes the one with the fewest reads refused.
//
// # To read on
//
//   - rewrite.go: a [Rewrite] is a pattern with a name, and [Pipeline] all of them with the places that call them.
//     The file of each shows what becomes of a statement: scalar.go, accumulate.go, print.go, store.go, guarded.go.
//   - planner.go: [Function] goes through the loops of a function, the outermost first, and tries each in one form
//     after the other. An attempt is about one loop in one form. takes.go and exit.go (splitCondition) are such forms.
//   - schedule.go: what an attempt has decided. target is what it is about, and schedule what runs when. The rest
//     embeds that, and is a in its methods.
//   - attempt.go: attempt fills the schedule. Read plan first, then round. gather.go makes units whole where that
//     reads better, undo.go lets units run ahead that change memory which others see, contain.go asks package past.
//   - obstacles.go: obstacles says why a unit can't be late. What jumps is in exit.go and skip.go, what is taken
//     before an entry in hold.go.
//   - region.go: layout makes a region of a schedule. hoists.go is about variables of groups, ways.go and returns.go
//     about the ways out of the loop.
//   - remarks.go: report says what the schedule does, and why it does no more. hints.go says what to write instead.
//   - timing.go, literals.go and bound.go: loops that measure time, function literals, and how far a loop runs ahead.
//   - gen/internal/plan has the words for all this: deps.go for units and the order between them, effects.go and
//     locs.go for what units do to which places, remark.go for the titles of refusals. gen/codes.go explains each
//     code. Package emit prints the plan.
//   - lift.go: [Divide] does the same to a function that loops call and that looks at values: part of it is late.
//
// Stages that stand alone are packages below this one. While a function is planned, rows takes rows of tensors
// together, and past proves that loops may run past their end. When it is, naming gives the names. If reads still
// wait, plain and then numbers write the function in another form, and that is planned from the start. At last fuse
// marks operations that are computed in one pass, and the function is planned once more.
//
// # What attempts share
//
// No attempt changes what another one sees. Each has a tree of statements of its own, which only rows.Together
// changes, before the first round, and maps of its own. A function that allows more, such as fields that are taken
// before they change, is another [plan.Function] with the same facts. What is shared and grows are caches: facts about
// variables and functions, and what dividing functions gave. Functions that call each other in a circle may be divided
// in another way if another one of them is asked first. Either is right.
package rewrite
