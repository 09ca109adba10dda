"""Pillow's side of the tests: decodes the images that the package wrote, and writes images that the package must read."""
import json
import os
import sys

import numpy as np
from PIL import Image


def check(directory, case):
    """Decodes one image as DLIO's reader does, and compares it with the pixels that the stream defines."""
    path = os.path.join(directory, case["file"])
    raw = np.fromfile(path + ".raw", np.uint8).reshape(case["height"], case["width"])
    image = Image.open(path)
    got = np.asarray(image)
    if got.dtype != np.uint8 or got.ndim != 2 or image.mode != "L":
        return f"mode {image.mode}, {got.dtype} {got.shape}"
    png = path.endswith(".png")
    rows = got.shape[0] if png and case["exact"] else case["height"]
    if got.shape != (rows, case["width"]) or rows > case["height"] or rows < 0.6 * case["height"]:
        return f"shape {got.shape}"
    off = np.abs(got.astype(int) - raw[:rows].astype(int))
    # Quality 75 blurs random pixels by 9 on average; small images of exact size have little room beside their header.
    limit = 0 if png else 10 if not case["exact"] else 2 if raw.size > 20000 else 50
    if off.mean() > limit:
        return f"pixels are off by {off.mean():.2f} on average"
    return None


def write(directory):
    rng = np.random.default_rng(7)
    cases = []
    for name, options in [("jpeg", {}), ("jpeg", {"progressive": True}), ("jpeg", {"optimize": True, "quality": 95}),
                          ("jpeg", {"comment": "x" * 60000}), ("png", {}), ("png", {"compress_level": 0}), ("png", {"optimize": True})]:
        for mode, shape in [("L", (100, 77)), ("RGB", (33, 41, 3)), ("L", (1, 1)), ("L", (700, 500))]:
            file = f"theirs-{len(cases)}.{name}"
            Image.fromarray(rng.integers(0, 256, shape, np.uint8), mode).save(os.path.join(directory, file), **options)
            cases.append({"file": file, "bytes": int(np.prod(shape))})
    for mode, channels in [("1", 1), ("P", 1), ("LA", 2), ("RGBA", 4)]:
        file = f"theirs-{len(cases)}.png"
        Image.fromarray(rng.integers(0, 256, (20, 30), np.uint8)).convert("RGB").convert(mode).save(os.path.join(directory, file))
        cases.append({"file": file, "bytes": 600 * channels})
    json.dump(cases, open(os.path.join(directory, "theirs.json"), "w"))


def main():
    directory = sys.argv[1]
    bad = 0
    cases = json.load(open(os.path.join(directory, "cases.json")))
    for case in cases:
        problem = check(directory, case)
        if problem:
            bad += 1
            print(case["file"], problem)
    write(directory)
    print(f"{len(cases)} cases, {bad} bad")


main()
