package stream

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Numbers. Draw i of stream index starts a chain of 16-byte blocks, b0 = AES(index || i), b(k+1) = AES(b(k)) under the
// family's second key, and a distribution takes as many blocks of its chain as it needs. So draws are independent of
// each other whatever was drawn before, and rejection sampling stays exact. Each block gives two 64-bit numbers.
//
// Nothing here calls math's transcendental functions: they differ between architectures. Every product that is added to
// something is rounded by an explicit conversion, which keeps the compiler from fusing the two.

// chain is the sequence of blocks behind one draw.
type chain struct {
	family *Seeded
	block  [blockSize]byte
}

// chain returns the chain of draw i of stream index. The caller gives it back with done.
func (s *Seeded) chain(index, i uint64) *chain {
	c, ok := s.chains.Get().(*chain)
	if !ok {
		c = &chain{family: s}
	}
	binary.BigEndian.PutUint64(c.block[:8], index)
	binary.BigEndian.PutUint64(c.block[8:], i)
	return c
}

func (c *chain) done() { c.family.chains.Put(c) }

// next returns the two halves of the next block, each read big-endian.
func (c *chain) next() (hi, lo uint64) {
	c.family.draws.Encrypt(c.block[:], c.block[:])
	return binary.BigEndian.Uint64(c.block[:8]), binary.BigEndian.Uint64(c.block[8:])
}

// Uint64 returns draw i of stream index: 64 uniform bits.
func (s *Seeded) Uint64(index, i uint64) uint64 {
	c := s.chain(index, i)
	defer c.done()
	hi, _ := c.next()
	return hi
}

// Uniform returns draw i of stream index as an exactly uniform integer in [0, n). n = 0 stands for 2^64: every value.
func (s *Seeded) Uniform(index, i, n uint64) uint64 {
	c := s.chain(index, i)
	defer c.done()
	for {
		x, _ := c.next()
		if n == 0 {
			return x
		}
		// Lemire's multiply-shift: of the 2^64 values of x, the 2^64 mod n whose low product is small are one too many.
		if hi, lo := bits.Mul64(x, n); lo >= -n%n {
			return hi
		}
	}
}

// Float64 returns draw i of stream index: uniform in [0, 1), a multiple of 2^-53.
func (s *Seeded) Float64(index, i uint64) float64 {
	return float64(s.Uint64(index, i)>>11) * 0x1p-53
}

// Normal returns draw i of stream index from the standard normal distribution (mean 0, variance 1), by Marsaglia's
// polar method. It is finite; its size is below 13.
func (s *Seeded) Normal(index, i uint64) float64 {
	c := s.chain(index, i)
	defer c.done()
	return c.normal()
}

// Exponential returns draw i of stream index from the exponential distribution with mean 1. It lies in [0, 36.8).
func (s *Seeded) Exponential(index, i uint64) float64 {
	c := s.chain(index, i)
	defer c.done()
	return c.exponential()
}

// Gamma returns draw i of stream index from the gamma distribution with the given shape and scale 1 (mean = shape),
// by the method of Marsaglia and Tsang (2000). It is NaN unless shape is finite and above 0.
func (s *Seeded) Gamma(index, i uint64, shape float64) float64 {
	if !(shape > 0) || math.IsInf(shape, 1) {
		return math.NaN()
	}
	c := s.chain(index, i)
	defer c.done()
	return c.gamma(shape)
}

// MaxPoisson is the largest mean that Poisson takes: up to there a count is exact in a float64.
const MaxPoisson = 0x1p52

// Poisson returns draw i of stream index from the Poisson distribution with mean lambda, a count of 0 or more, by the
// gamma reduction of Ahrens and Dieter (1974). It is NaN unless lambda is in [0, MaxPoisson].
func (s *Seeded) Poisson(index, i uint64, lambda float64) float64 {
	if !(lambda >= 0 && lambda <= MaxPoisson) {
		return math.NaN()
	}
	c := s.chain(index, i)
	defer c.done()
	return c.poisson(lambda)
}

// open returns a uniform number in (0, 1]: an odd end that a logarithm can take.
func open(x uint64) float64 { return float64(x>>11+1) * 0x1p-53 }

// signed returns a uniform number in (-1, 1), symmetric around 0 and never 0: an odd multiple of 2^-52.
func signed(x uint64) float64 { return float64(2*int64(x>>12)+1-1<<52) * 0x1p-52 }

func (c *chain) normal() float64 {
	for {
		hi, lo := c.next()
		u, v := signed(hi), signed(lo)
		r := float64(u*u) + float64(v*v)
		if r < 1 {
			return float64(u * math.Sqrt(float64(-2*ln(r))/r)) // sqrt and division are exactly rounded everywhere
		}
	}
}

func (c *chain) exponential() float64 {
	hi, _ := c.next()
	return 0 - ln(open(hi)) // 0-0 is +0, where -0 would print a sign
}

func (c *chain) gamma(shape float64) float64 {
	if shape < 1 {
		hi, _ := c.next()
		boost := exp(ln(open(hi)) / shape)
		return float64(boost * c.gamma(shape+1))
	}
	d := shape - 1.0/3
	k := 1 / math.Sqrt(float64(9*d))
	for {
		x := c.normal()
		w := 1 + float64(k*x)
		v := float64(float64(w*w) * w)
		hi, _ := c.next() // taken whether needed or not, so that the number of blocks per attempt is plain
		if v <= 0 {
			continue
		}
		// Accept when ln(u) < x²/2 + d(1 - v + ln v).
		if ln(open(hi)) < float64(float64(0.5*x)*x)+float64(d*(1-v+ln(v))) {
			return float64(d * v)
		}
	}
}

// poissonByCounting is the mean below which a Poisson number is found by counting exponential gaps.
const poissonByCounting = 16

func (c *chain) poisson(lambda float64) float64 {
	count := 0.0
	for lambda >= poissonByCounting {
		// The m-th event of a unit-rate process happens at a gamma(m) time. If that is inside lambda, m events are
		// certain and the rest of the interval follows; else m-1 events fall uniformly into [0, t), some below lambda.
		m := math.Floor(float64(0.875 * lambda))
		t := c.gamma(m)
		if t > lambda {
			return count + c.binomial(m-1, lambda/t)
		}
		count += m
		lambda -= t
	}
	for t := c.exponential(); t < lambda; t += c.exponential() {
		count++
	}
	return count
}

// binomialByCounting is the number of trials at and below which a binomial number is found by making the trials.
const binomialByCounting = 16

// binomial draws the number of n uniform points in [0, 1) that are below p, by finding the middle point (which is beta
// distributed) and looking on one side of it only.
func (c *chain) binomial(n, p float64) float64 {
	count := 0.0
	for n > binomialByCounting {
		a := 1 + math.Floor(n/2)
		b := n - a + 1
		x, y := c.gamma(a), c.gamma(b)
		mid := x / (x + y)
		if mid >= p {
			n, p = a-1, p/mid
		} else {
			count += a
			n, p = b-1, (p-mid)/(1-mid)
		}
	}
	for ; n > 0; n-- {
		if hi, _ := c.next(); float64(hi>>11)*0x1p-53 < p {
			count++
		}
	}
	return count
}
