// Package gotch has some signatures of the package of this name.
package gotch

type Device struct{ Value int }

var CPU = Device{-1}
