package dl

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// open looks for names only in the system's folder. Anybody may have put files beside the program
// or into the working directory.
func open(name string) (uintptr, error) {
	flags := uintptr(windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if filepath.IsAbs(name) {
		flags = windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | windows.LOAD_LIBRARY_SEARCH_SYSTEM32
	}
	handle, err := windows.LoadLibraryEx(name, 0, flags)
	return uintptr(handle), err
}

func symbol(handle uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(handle), name)
}
