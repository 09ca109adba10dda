//go:build cgo

package environment

const cgoEnabled = true
