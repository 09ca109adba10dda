#!/usr/bin/env python3
"""Draws docs/costs.svg from the output of the Cost benchmarks:

    go test ./pkg/bench ./pkg/pipeline -run '^$' -bench Cost -benchtime 3x | python3 scripts/costs.py > docs/costs.svg

It needs nothing but Python's own library. Each curve is processor time in microseconds over a count, on a logarithmic scale.
"""
import math
import re
import sys

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 400, 300, 56, 48, 56, 24
COLOURS = ["#0b62a4", "#b4491c"]


def measured(lines):
    """The figures of each benchmark: (what is counted, count) -> {unit: value}."""
    found = {}
    for line in lines:
        m = re.match(r"BenchmarkCost/(\d+)(accelerators|files)\S*\s+\d+\s+(.*)", line)
        if not m:
            continue
        fields = m.group(3).split()
        found[m.group(2), int(m.group(1))] = {unit: float(value) for value, unit in zip(fields[::2], fields[1::2])}
    return found


def text(x, y, words, size=12, anchor="middle", colour="#222", turn=None):
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{turned}>{words}</text>'


def count(n):
    e = round(math.log10(n))
    if n >= 1000 and 10**e == n:
        return f'10<tspan dy="-5" font-size="9">{e}</tspan>'
    return f"{n:,}"


def panel(left, title, axis, curves):
    """One diagram; curves are (name, {count: microseconds})."""
    counts = sorted({n for _, c in curves for n in c})
    top = max(v for _, c in curves for v in c.values()) * 1.25
    step = 10 ** math.floor(math.log10(top))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if top / s <= 6)
    low, high = math.log(counts[0]), math.log(counts[-1])
    x = lambda n: left + LEFT + 16 + (math.log(n) - low) / (high - low) * (WIDTH - LEFT - 40)
    y = lambda v: HEIGHT - BOTTOM - v / top * (HEIGHT - BOTTOM - TOP)
    out = [text(left + LEFT, 20, title, 14, "start")]
    v = 0
    while v < top:
        out.append(f'<path d="M{left + LEFT} {y(v):.1f}H{left + WIDTH - 8}" stroke="#ddd"/>')
        out.append(text(left + LEFT - 8, y(v) + 4, f"{v:g}", 11, "end"))
        v = round(v + step, 9)
    for n in counts:
        out.append(text(x(n), HEIGHT - BOTTOM + 18, count(n), 11))
    out.append(text(left + LEFT + (WIDTH - LEFT) / 2, HEIGHT - BOTTOM + 40, axis))
    out.append(text(left + 16, TOP + (HEIGHT - BOTTOM - TOP) / 2, "processor time, µs", 12, turn=-90))
    for i, (name, c) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        points = [(x(n), y(c[n])) for n in sorted(c)]
        out.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (a, b), n in zip(points, sorted(c)):
            out.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>')
            out.append(text(a, b - 8, f"{c[n]:.2g}" if c[n] < 10 else f"{c[n]:.0f}", 10, colour=colour))
        out.append(text(left + LEFT + 170 * i, 38, name, 12, "start", colour))
    return out


def main():
    found = measured(sys.stdin)
    curve = lambda of, unit: {n: v[unit] / 1000 for (what, n), v in found.items() if what == of and unit in v}
    steps, samples = curve("accelerators", "cpu-ns/step"), curve("accelerators", "cpu-ns/sample")
    files = curve("files", "cpu-ns/sample")
    if len(steps) < 2 or len(files) < 2:
        sys.exit("expected the output of both Cost benchmarks on standard input: see the top of this file")
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH + GAP}" height="{HEIGHT}" viewBox="0 0 {2 * WIDTH + GAP} {HEIGHT}" '
           'font-family="sans-serif">', '<rect width="100%" height="100%" fill="#fff"/>']
    out += panel(0, "What the engine costs, by accelerators", "accelerators in one process",
                 [("a step of one sample", steps), ("each further sample", samples)])
    out += panel(WIDTH + GAP, "and by files of the data set", "files", [("a sample, in batches of 16, shuffled", files)])
    print("\n".join(out + ["</svg>"]))


main()
