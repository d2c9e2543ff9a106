//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package report

import "os"

// lockAlone reports false: these systems have no locks, so other processes may write to f.
func lockAlone(*os.File) bool { return false }

// lockShared does nothing.
func lockShared(*os.File) error { return nil }

func unlock(*os.File) {}
