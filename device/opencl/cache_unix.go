//go:build unix

package opencl

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW

// ownership reports whether this process's user owns a file or folder, and whether others may write
// to it.
func ownership(info fs.FileInfo) (own, shared bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid(), info.Mode().Perm()&0o022 != 0
}

// isRoots reports whether root owns a file or folder.
func isRoots(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}
