module example.com/quickstart

go 1.26

tool github.com/asyncgen/asyncgen/cmd/asyncgen

// This copy runs against the checkout that it is part of. A module of your own has no such line.
replace github.com/asyncgen/asyncgen => ../..

require github.com/asyncgen/asyncgen v0.0.0

require (
	github.com/dave/jennifer v1.7.1 // indirect
	golang.org/x/mod v0.39.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)
