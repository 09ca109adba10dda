package bench

import "github.com/benchpin/benchpin/pkg/bench/loader"

// IdentityError is the error of a run in which a file was not the one that Options.Identity knows: it was changed or replaced.
type IdentityError = loader.IdentityError

// ErrOther is wrapped by the error of a run that found a file missing, or of another size than its manifest says.
var ErrOther = loader.ErrOther
