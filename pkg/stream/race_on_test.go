//go:build race

package stream

// raceDetector is true when the tests run with -race.
const raceDetector = true
