// Package wire carries messages between the processes of one job, which are called its ranks. It makes a device of each
// other rank, whose commands are the messages to it and from it. It knows no network itself: a [Transport] does.
package wire
