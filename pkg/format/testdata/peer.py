"""numpy's side of the tests: checks files that the package wrote, and writes files that the package must read."""
import io
import json
import os
import sys
import zipfile

import numpy as np


def expected(raw, name):
    """The elements that the stream's bytes stand for, computed in numpy's own arithmetic."""
    u = lambda t: np.frombuffer(raw, t)
    if name == "bool":
        return u("u1") % 2 == 1
    if name == "float16":
        return ((u("<u2") >> 5) / 2048).astype(np.float16)
    if name == "float32":
        return ((u("<u4") >> 8) / 2**24).astype(np.float32)
    if name == "float64":
        return (u("<u8") >> np.uint64(11)).astype(np.float64) / 2**53
    if name == "complex64":
        return expected(raw, "float32").view(np.complex64)
    if name == "complex128":
        return expected(raw, "float64").view(np.complex128)
    return u(np.dtype(name).newbyteorder("<"))


def local_headers(data):
    """Makes the local headers of a Python from 3.11.4 on look like the older ones': true sizes, version 20."""
    data, at = bytearray(data), 0
    while data[at:at + 4] == b"PK\x03\x04":
        name = int.from_bytes(data[at + 26:at + 28], "little")
        extra = data[at + 30 + name:at + 50 + name]
        size = int.from_bytes(extra[4:12], "little")
        if size <= zipfile.ZIP64_LIMIT:
            data[at + 4:at + 6] = (20).to_bytes(2, "little")
            data[at + 18:at + 22] = data[at + 22:at + 26] = size.to_bytes(4, "little")
        at += 50 + name + size
    while data[at:at + 4] == b"PK\x01\x02":
        if data[at + 20:at + 24] != b"\xff\xff\xff\xff":
            data[at + 4] = data[at + 6] = 20
        at += 46 + sum(int.from_bytes(data[at + i:at + i + 2], "little") for i in (28, 30, 32))
    return bytes(data)


def check(folder):
    """Loads every case of folder/cases.json, compares its values, and saves them again as numpy does."""
    bad = 0
    cases = json.load(open(os.path.join(folder, "cases.json")))
    for c in cases:
        path = os.path.join(folder, c["file"])
        shape, name = (*c["dims"], c["samples"]), c["dtype"]
        raw = open(path + ".raw", "rb").read()
        out = io.BytesIO()
        if c["format"] == "npz":
            with np.load(path) as z:
                x, y, names = z["x"], z["y"], z.files
            if names != ["x", "y"] or y.dtype != np.int64 or y.shape != shape[-1:] or y.any():
                print(path, "labels differ", names, y.dtype, y.shape)
                bad += 1
            np.savez(out, x=x, y=y)
        else:
            x = np.load(path)
            np.save(out, x)
        if x.dtype != np.dtype(name) or x.shape != shape:
            print(path, "is", x.dtype, x.shape, "not", name, shape)
            bad += 1
        elif x.ravel().tobytes() != expected(raw, name).tobytes():
            print(path, "values differ from the stream's")
            bad += 1
        elif x.dtype.kind in "fc" and not (np.isfinite(x).all() and (x.real >= 0).all() and (x.real < 1).all()):
            print(path, "has values outside [0, 1)")
            bad += 1
        ours, theirs = open(path, "rb").read(), out.getvalue()
        if c["format"] == "npz":
            theirs = local_headers(theirs)
        if ours != theirs:
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            print(path, "differs from what numpy saves at byte", at, "sizes", len(ours), len(theirs))
            bad += 1
    print(len(cases), "cases,", bad, "bad")
    return bad


def headers():
    """Prints the header of each [type string, shape] on standard input, in hex."""
    for descr, shape in json.load(sys.stdin):
        out = io.BytesIO()
        d = {"descr": descr, "fortran_order": False, "shape": tuple(shape)}
        np.lib.format._write_array_header(out, d) if not hasattr(np.lib.format, "write_array_header_1_0") \
            else np.lib.format.write_array_header_1_0(out, d)
        print(out.getvalue().hex())


def write(folder):
    """Writes files of many kinds; cases.json tells what they hold."""
    cases, rng = [], np.random.default_rng(1)

    def case(file, x):
        n = x.shape[-1]
        cases.append({"file": file, "samples": n, "bytes": x.nbytes // n})
        return os.path.join(folder, file)

    for name in ("uint8", "int64", "float32", "complex128"):
        for shape in ((5, 7, 1), (30, 41, 4), (3, 200, 300, 2), (9,)):
            x = (rng.random(shape) * 100).astype(name)
            stem = f"{name}-{'x'.join(map(str, shape))}"
            y = np.zeros(shape[-1], np.int64)
            np.save(case(stem + ".npy", x), x)
            np.savez(case(stem + ".npz", x), x=x, y=y)
            np.savez_compressed(case(stem + "-z.npz", x), x=x, y=y)
    x = rng.integers(0, 255, (60, 50, 3), np.uint8)
    np.savez(case("order.npz", x), a=np.arange(1000), y=np.zeros(3), x=x, z=np.ones((2, 2)))
    np.savez_compressed(case("order-z.npz", x), a=np.arange(1000), y=np.zeros(3), x=x, z=np.ones((2, 2)))
    np.savez(case("only.npz", x), x=x)
    many = {f"m{i}": np.arange(i) for i in range(300)}
    np.savez(case("many.npz", x), x=x, **many)
    np.savez(case("long-name.npz", x), x=x, **{"n" * 300: x})
    np.save(case("fortran.npy", x), np.asfortranarray(x))
    np.savez_compressed(case("fortran-z.npz", x), x=np.asfortranarray(x))
    np.save(case("big-endian.npy", x), x.astype(">f4"))
    cases[-1]["bytes"] *= 4
    zeros = np.zeros((512, 512, 2), np.float64)
    np.savez_compressed(case("zeros-z.npz", zeros), x=zeros)
    for version in ((2, 0), (3, 0)):
        with open(case(f"version{version[0]}.npy", x), "wb") as f:
            np.lib.format.write_array(f, x, version=version)
    json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))


def big(path, side):
    """Writes side x side zero bytes, and gives the small array's local header its older look (see local_headers)."""
    np.savez(path, x=np.zeros((int(side), int(side), 1), np.uint8), y=np.zeros(1, np.int64))
    with zipfile.ZipFile(path) as z:
        y = z.getinfo("y.npy")
    with open(path, "r+b") as f:
        f.seek(y.header_offset + 4)
        f.write((20).to_bytes(2, "little"))
        f.seek(y.header_offset + 18)
        f.write(y.file_size.to_bytes(4, "little") * 2)


if __name__ == "__main__":
    what, *args = sys.argv[1:]
    if what == "check":
        sys.exit(1 if check(*args) else 0)
    {"headers": headers, "write": write, "big": big}[what](*args)
