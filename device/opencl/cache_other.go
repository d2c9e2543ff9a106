//go:build !unix

package opencl

import "io/fs"

// noFollow is no flag: see cache_unix.go.
const noFollow = 0

// ownership reports whether this process's user owns a file or folder, and whether others may write
// to it. It doesn't look: here access control lists already make the cache folder private to the
// user.
func ownership(fs.FileInfo) (own, shared bool) { return true, false }

// isRoots reports whether a file or folder belongs to the user who may write everywhere.
func isRoots(fs.FileInfo) bool { return false }
