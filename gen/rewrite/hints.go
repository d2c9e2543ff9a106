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
