#!/usr/bin/env python3
"""A second implementation of docs/stream.md: standard library and b3sum only, as slow as it likes to be.

Reads golden lines (see golden-v1.txt) on standard input, ignores their results, and prints them with its own.
"""
import math
import struct
import subprocess
import sys

CONTEXT = "github.com/benchpin/benchpin 2026-11-30 seeded stream v1"


def make_sbox():
    sbox, p, q = [0] * 256, 1, 1
    while True:
        p = p ^ (p << 1) & 0xFF ^ (0x1B if p & 0x80 else 0)
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 0xFF
        if q & 0x80:
            q ^= 0x09
        rot = lambda n: (q << n | q >> (8 - n)) & 0xFF
        sbox[p] = q ^ rot(1) ^ rot(2) ^ rot(3) ^ rot(4) ^ 0x63
        if p == 1:
            break
    sbox[0] = 0x63
    return sbox


SBOX = make_sbox()


class AES128:
    def __init__(self, key):
        words, rcon = [list(key[i:i + 4]) for i in range(0, 16, 4)], 1
        for i in range(4, 44):
            w = list(words[i - 1])
            if i % 4 == 0:
                w = [SBOX[b] for b in w[1:] + w[:1]]
                w[0] ^= rcon
                rcon = rcon << 1 ^ (0x11B if rcon & 0x80 else 0)
            words.append([a ^ b for a, b in zip(w, words[i - 4])])
        self.keys = [sum(words[i:i + 4], []) for i in range(0, 44, 4)]

    def encrypt(self, block):
        double = lambda b: b << 1 ^ (0x11B if b & 0x80 else 0)
        s = [a ^ b for a, b in zip(block, self.keys[0])]
        for r in range(1, 11):
            s = [SBOX[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
            if r < 10:
                m = []
                for c in range(0, 16, 4):
                    a = s[c:c + 4]
                    m += [double(a[i]) ^ double(a[(i + 1) % 4]) ^ a[(i + 1) % 4] ^ a[(i + 2) % 4] ^ a[(i + 3) % 4]
                          for i in range(4)]
                s = m
            s = [a ^ b for a, b in zip(s, self.keys[r])]
        return bytes(s)


class Family:
    def __init__(self, domain, version, seed):
        d = domain.encode()
        material = struct.pack(">Q", len(d)) + d + struct.pack(">IQ", version, seed)
        out = subprocess.run(["b3sum", "--derive-key", CONTEXT, "--no-names"], input=material, check=True,
                             stdout=subprocess.PIPE).stdout
        self.key = bytes.fromhex(out.decode().strip())
        self.bytes, self.draws = AES128(self.key[:16]), AES128(self.key[16:])

    def fill(self, index, off, n):
        first, last = off // 16, (off + n + 15) // 16
        out = b"".join(self.bytes.encrypt(struct.pack(">QQ", index, b % 2**60)) for b in range(first, last))
        return out[off % 16:off % 16 + n]


class Chain:
    def __init__(self, family, index, i):
        self.aes, self.block = family.draws, struct.pack(">QQ", index, i)

    def next(self):
        self.block = self.aes.encrypt(self.block)
        return struct.unpack(">QQ", self.block)

    def uint64(self):
        return self.next()[0]

    def uniform(self, n):
        while True:
            x = self.next()[0]
            if n == 0:
                return x
            if (x * n) % 2**64 >= 2**64 % n:
                return x * n >> 64

    def float64(self):
        return (self.next()[0] >> 11) * 2.0**-53

    def open(self):
        return ((self.next()[0] >> 11) + 1) * 2.0**-53

    def normal(self):
        while True:
            hi, lo = self.next()
            u, v = [(2 * (x >> 12) + 1 - 2**52) * 2.0**-52 for x in (hi, lo)]
            r = u * u + v * v
            if r < 1:
                return u * math.sqrt(-2 * ln(r) / r)

    def exponential(self):
        return 0 - ln(self.open())

    def gamma(self, shape):
        if shape < 1:
            boost = exp(ln(self.open()) / shape)
            return boost * self.gamma(shape + 1)
        d = shape - 1.0 / 3
        k = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            w = 1 + k * x
            v = w * w * w
            u = self.open()
            if v > 0 and ln(u) < 0.5 * x * x + d * (1 - v + ln(v)):
                return d * v

    def poisson(self, lam):
        count = 0.0
        while lam >= 16:
            m = math.floor(0.875 * lam)
            t = self.gamma(m)
            if t > lam:
                return count + self.binomial(m - 1, lam / t)
            count += m
            lam -= t
        t = self.exponential()
        while t < lam:
            count += 1
            t += self.exponential()
        return count

    def binomial(self, n, p):
        count = 0.0
        while n > 16:
            a = 1 + n // 2
            b = n - a + 1
            x = self.gamma(a)
            y = self.gamma(b)
            mid = x / (x + y)
            if mid >= p:
                n, p = a - 1, p / mid
            else:
                count += a
                n, p = b - 1, (p - mid) / (1 - mid)
        for _ in range(int(n)):
            if self.float64() < p:
                count += 1
        return count


LN2_HI, LN2_LO = float.fromhex("0x1.62e42feep-01"), float.fromhex("0x1.a39ef35793c76p-33")


def ln(x):
    m, k = math.frexp(x)  # [0.5, 1)
    m, k = m * 2, k - 1
    if m > float.fromhex("0x1.6a09e667f3bcdp+0"):
        m, k = m / 2, k + 1
    f = m - 1
    s = f / (m + 1)
    z = s * s
    p = 1.0 / 23
    for n in range(21, 1, -2):
        p = 1.0 / n + p * z
    tail = s * f - 2 * s * (z * p)
    return k * LN2_HI - ((tail - k * LN2_LO) - f)


def exp(x):
    k = math.floor(x * float.fromhex("0x1.71547652b82fep+0") + 0.5)
    if k <= -1022:
        return 0.0
    r = (x - k * LN2_HI) - k * LN2_LO
    p = 1.0
    for n in range(16, 0, -1):
        p = 1 + p * r / n
    return p * 2.0**k


def bits(x):
    return "%016x" % struct.unpack(">Q", struct.pack(">d", x))[0]


def answer(kind, family, args):
    if kind == "key":
        return family.key.hex()
    if kind == "bytes":
        index, off, n = map(int, args)
        return family.fill(index, off, n).hex()
    chain = Chain(family, int(args[0]), int(args[1]))
    if kind == "uint64":
        return str(chain.uint64())
    if kind == "uniform":
        return str(chain.uniform(int(args[2])))
    if kind in ("gamma", "poisson"):
        return bits(getattr(chain, kind)(float(args[2])))
    return bits(getattr(chain, kind)())


families = {}
for line in sys.stdin:
    line = line.rstrip("\n")
    if not line or line.startswith("#"):
        print(line)
        continue
    query = line.split(" = ")[0]
    kind, domain, version, seed, *args = query.split(" ")
    name = (domain, int(version), int(seed))
    if name not in families:
        families[name] = Family(*name)
    print(query + " = " + answer(kind, families[name], args))
