//go:build !amd64

package blake

// wide is false: there is no assembly of ours for this machine.
func wide() bool { return false }

func chunks16(*[lanes]CV, *[lanes * chunkSize]byte, uint64) {}
func parents16(*[lanes]CV, *[2 * lanes]CV)                  {}

func blocks16(*[lanes]CV, *[lanes][64]byte) {}
