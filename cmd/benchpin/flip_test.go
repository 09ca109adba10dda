package main

import (
	"os"
)

// flipBit flips the lowest bit of one byte of a file; a negative offset counts from its end.
func flipBit(path string, offset int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if offset < 0 {
		offset += len(b)
	}
	b[offset] ^= 1
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, b, info.Mode())
}
