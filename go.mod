module github.com/asyncgen/asyncgen

go 1.26

require (
	github.com/dave/jennifer v1.7.1
	github.com/ebitengine/purego v0.11.3
	golang.org/x/sys v0.47.0
	golang.org/x/tools v0.49.0
	gonum.org/v1/gonum v0.17.0
)

require (
	golang.org/x/mod v0.39.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
)
