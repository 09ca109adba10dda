package sampler

// mt is MT19937 as numpy's legacy RandomState drives it. It gives numpy's bits, so an order can be recomputed with
// numpy.random.RandomState(seed).shuffle by anyone.
type mt struct {
	state [mtWords]uint32
	next  int
}

// The constants of MT19937 (Matsumoto and Nishimura, 1998; reference code mt19937ar.c).
const (
	mtWords     = 624
	mtShift     = 397
	mtMatrix    = 0x9908b0df
	mtUpperMask = 0x80000000
	mtLowerMask = 0x7fffffff
)

// seed sets the state as init_genrand does, which is what numpy.random.seed(integer) uses.
func (m *mt) seed(s uint32) {
	m.state[0] = s
	for i := 1; i < mtWords; i++ {
		m.state[i] = 1812433253*(m.state[i-1]^(m.state[i-1]>>30)) + uint32(i)
	}
	m.next = mtWords
}

// uint32 draws the next 32 bits.
func (m *mt) uint32() uint32 {
	if m.next == mtWords {
		m.refill()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= (y << 7) & 0x9d2c5680
	y ^= (y << 15) & 0xefc60000
	return y ^ y>>18
}

func (m *mt) refill() {
	s := &m.state
	for i := range mtWords {
		y := s[i]&mtUpperMask | s[(i+1)%mtWords]&mtLowerMask
		v := s[(i+mtShift)%mtWords] ^ y>>1
		if y&1 != 0 {
			v ^= mtMatrix
		}
		s[i] = v
	}
	m.next = 0
}

// interval draws uniformly from [0, max] as numpy's random_interval does for max < 2^32: draws are masked to the bits of max
// and those above max are thrown away. max must be at least 1 (numpy draws nothing for 0).
func (m *mt) interval(max uint32) uint32 {
	mask := max
	mask |= mask >> 1
	mask |= mask >> 2
	mask |= mask >> 4
	mask |= mask >> 8
	mask |= mask >> 16
	for {
		if v := m.uint32() & mask; v <= max {
			return v
		}
	}
}

// shuffle permutes a in place as RandomState.shuffle does, for lists and one-dimensional arrays alike.
func (m *mt) shuffle(a []uint32) {
	for i := len(a) - 1; i >= 1; i-- {
		j := m.interval(uint32(i))
		a[i], a[j] = a[j], a[i]
	}
}
