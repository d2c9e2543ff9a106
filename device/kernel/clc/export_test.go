package clc

// Sources returns all sources printed so far, by ID.
func Sources() []*Source {
	sources.mu.RLock()
	defer sources.mu.RUnlock()
	all := make([]*Source, len(sources.byText))
	for _, s := range sources.byText {
		all[s.ID] = s
	}
	return all
}

// Paragraphs returns the names in library.cl.
func Paragraphs() []string {
	var names []string
	for name := range library() {
		names = append(names, name)
	}
	return names
}

// Kernels returns the names in kernels.cl.
func Kernels() []string {
	var names []string
	for name := range kernelTexts() {
		names = append(names, name)
	}
	return names
}
