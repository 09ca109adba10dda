package audit

import "math"

// Assurance is what an audit that found no damage says of the damage that there can be.
type Assurance struct {
	// Confidence is the chance with which more damage would have been found, such as 0.95.
	Confidence float64 `json:"confidence"`
	// Share is the smallest share of the bytes that would have been found damaged with this confidence; 0 when every chunk was checked.
	Share float64 `json:"share"`
	// Method is the formula: "all", "hypergeometric" or "binomial".
	Method string `json:"method"`
}

// The methods of assurances.
const (
	// All: every chunk was checked, and any damage would have been found.
	All = "all"
	// Hypergeometric: all chunks have one size, and n different ones of N were drawn. D damaged chunks are all missed with the chance
	// C(N-D, n) / C(N, n).
	Hypergeometric = "hypergeometric"
	// Binomial: n draws by bytes miss damaged chunks that hold the share p of the bytes with the chance (1-p)^n.
	Binomial = "binomial"
)

// exactGroups bounds the chunks of a data set for which the hypergeometric distribution is summed. Above, it is the binomial one for any
// purpose, which is always the larger share.
const exactGroups = 1 << 22

// Assure says which share of damaged bytes an audit of this challenge would have found with a confidence between 0 and 1. A chunk is
// damaged when any byte of it is. The formulas are those of Ateniese et al., Provable Data Possession at Untrusted Stores (CCS 2007),
// section 4.2, in bytes in place of blocks where chunks differ in size: the draws before the last different chunk are independent, and
// the chunks of the first n of them are among those that are checked.
func (c *Challenge) Assure(confidence float64) Assurance {
	n := int64(len(c.Chunks))
	if n == c.Groups || c.Equal && n == int64(c.Count) {
		return AssureAlike(n, c.Groups, confidence)
	}
	return binomial(int64(c.Count), confidence)
}

// AssureAlike says the same of n different ones that were drawn among so many, each as likely as any other.
func AssureAlike(n, of int64, confidence float64) Assurance {
	switch {
	case n >= of:
		return Assurance{Confidence: confidence, Method: All}
	case of <= exactGroups:
		return Assurance{Confidence: confidence, Method: Hypergeometric, Share: float64(least(of, n, 1-confidence)) / float64(of)}
	}
	return binomial(n, confidence)
}

func binomial(n int64, confidence float64) Assurance {
	return Assurance{Confidence: confidence, Method: Binomial, Share: -math.Expm1(math.Log1p(-confidence) / float64(n))}
}

// least is the smallest number of damaged chunks of all that n different ones miss with a chance of at most miss:
// C(all-D, n) / C(all, n) = product over j < D of (all-n-j) / (all-j).
func least(all, n int64, miss float64) int64 {
	chance := 1.0
	for d := int64(0); d < all-n; d++ {
		if chance *= float64(all-n-d) / float64(all-d); chance <= miss {
			return d + 1
		}
	}
	return all - n + 1 // so many cannot be missed
}
