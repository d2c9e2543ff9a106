//go:build !unix

package opencl

import "io/fs"

// noFollow is a flag for opening files that changes nothing here.
const noFollow = 0

// ownership reports whether a file or folder belongs to the user as whom this process runs, and
// whether others may write to it. Here the folder for caches is the user's own by the system's
// lists of who may do what.
func ownership(fs.FileInfo) (own, shared bool) { return true, false }

// isRoots reports whether a file or folder belongs to the user who may write everywhere.
func isRoots(fs.FileInfo) bool { return false }
