package rewrite

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"unicode"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// keepLocal says what to write in the place of a change that others can see, and would see too early.
func keepLocal(c plan.Cause) string {
	place, isPlace := strings.CutPrefix(c.Text, "changes ")
	if strings.HasPrefix(place, "what is behind ") || strings.HasSuffix(place, "...") {
		isPlace = false
	}
	called, after, isCall := strings.Cut(strings.TrimPrefix(c.Text, "calls "), ", which ")
	switch {
	case isPlace:
		return fmt.Sprintf("write mine := %s before the loop, mine in its place in the loop, and %[1]s = mine after it", place)
	case strings.Contains(c.Text, "draws from a random generator"):
		return "make the generator in the function, with r := rand.New(rand.NewPCG(1, 2)), or draw before the loop, into a slice"
	case strings.HasSuffix(c.Text, "writes to the outside"):
		return "print beside the read of a value, which comes later with it, and not where the tensor is computed"
	case isCall && strings.HasPrefix(after, "changes "):
		return fmt.Sprintf("let %s change a variable of the function, and store that after the loop", called)
	}
	return "keep it in a variable of the function, and store it after the loop"
}

// onTensors says what to write in the place of c, which a value decides.
func onTensors(c plan.Cause) string {
	if strings.HasSuffix(c.Text, "State).Restore") {
		return "break out of the loop there, and restore after it"
	}
	return "keep the computation on tensors"
}

// takeBefore says how to take what e, a call or a field of which the value changes, is now.
func takeBefore(e ast.Expr, text string) string {
	name := "now"
	switch x := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if id := plan.CalleeName(x.Fun); id != nil {
			name = lower(id.Name)
		}
	case *ast.SelectorExpr:
		name = lower(x.Sel.Name)
	}
	return fmt.Sprintf("write %s := %s before the statement that looks at a value, and %[1]s in it", name, text)
}

func lower(name string) string {
	r := []rune(name)
	r[0] = unicode.ToLower(r[0])
	if s := string(r); token.IsIdentifier(s) {
		return s
	}
	return "now"
}

// sooner says what to write in the place of what may fail past the end of a loop.
func sooner(c plan.Cause) string {
	const rarely = "test the value in few iterations, as with if i%8 == 7 && ..."
	before, of, isIndex := strings.Cut(c.Text, "may index beyond the end of ")
	called, _, isCall := strings.Cut(strings.TrimPrefix(c.Text, "calls "), " with ")
	switch {
	case isIndex && before == "":
		return fmt.Sprintf("let the loop range over %s, or %s", of, rarely)
	case strings.HasSuffix(c.Text, "whose shape may change"):
		return "give the tensor the same shape in every iteration, or " + rarely
	case isCall && strings.HasSuffix(c.Text, "with another argument each time"):
		called, _, _ = strings.Cut(called, ", which ")
		return fmt.Sprintf("call %s before the loop, for all iterations, or %s", called, rarely)
	case c.Text == "may go on for ever":
		return "let that loop count, as with for i := range n, or i += 16 up to a bound that it does not change"
	case strings.Contains(c.Text, " in some iterations only"):
		return "let an inner loop run from one test of the value to the next, or call it once before the loop"
	case strings.HasPrefix(c.Text, "may divide by zero"):
		return "divide by a constant, or on the device, or " + rarely
	}
	return "do it before the loop, or " + rarely
}
