module github.com/asyncgen/asyncgen/analysis/golangci

go 1.26

require (
	github.com/asyncgen/asyncgen v0.0.0
	github.com/golangci/plugin-module-register v0.1.2
	golang.org/x/tools v0.49.0
)

replace github.com/asyncgen/asyncgen => ../..
