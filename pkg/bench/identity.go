package bench

import "github.com/benchpin/benchpin/pkg/bench/loader"

// IdentityError is the error of a run in which a file was not the one that Options.Identity knows: it was changed or replaced.
type IdentityError = loader.IdentityError
