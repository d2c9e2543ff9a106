package kernel

type Expr struct{}

func Mul(x, y *Expr) *Expr { return nil }
