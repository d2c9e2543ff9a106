package data

// Resized is what tests call of resize.go.
var Resized = resized
