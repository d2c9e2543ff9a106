package regrown

import "github.com/asyncgen/asyncgen/runtime/tensor"

type plate struct{ u *tensor.Tensor }

func (p *plate) film(n int) (film *tensor.Tensor) {
	for i := range n {
		p.u = p.u.MulScalar(2)
		if i == 0 {
			film = p.u.Unsqueeze(0)
		} else {
			film = tensor.Concat(0, film, p.u.Unsqueeze(0)) // want `film is copied`
		}
	}
	for i := 1; i <= n; i++ {
		if i == 1 {
			film = p.u
			continue
		}
		film = tensor.Concat(0, film, p.u) // want `film is copied`
	}
	for i := range n {
		if i%8 == 0 {
			film = p.u // begins anew
		} else {
			film = tensor.Concat(0, film, p.u)
		}
	}
	return film
}
