package sigstore

import "time"

// SetClock replaces the clock by which a certificate is over.
func (k *Keyless) SetClock(now func() time.Time) { k.now = now }
