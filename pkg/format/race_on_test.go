//go:build race

package format

// raceDetector is true when the tests run with -race.
const raceDetector = true
