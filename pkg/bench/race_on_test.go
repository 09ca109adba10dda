//go:build race

package bench

// raceDetector is true when the tests run with -race.
const raceDetector = true
