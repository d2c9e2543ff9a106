package clc

// Sources are all that were printed so far.
func Sources() []*Source {
	sources.mu.RLock()
	defer sources.mu.RUnlock()
	all := make([]*Source, len(sources.byText))
	for _, s := range sources.byText {
		all[s.ID] = s
	}
	return all
}

// Paragraphs are the names in the library.
func Paragraphs() []string {
	var names []string
	for name := range library() {
		names = append(names, name)
	}
	return names
}

// Kernels are the names in kernels.cl.
func Kernels() []string {
	var names []string
	for name := range kernelTexts() {
		names = append(names, name)
	}
	return names
}
