//go:build !hdf5 || !cgo

package format

// librarySpecimens is empty: this build has no libhdf5.
func librarySpecimens() []specimen { return nil }
