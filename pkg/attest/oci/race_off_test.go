//go:build !race

package oci

// raceDetector is true when the tests run with -race.
const raceDetector = false
