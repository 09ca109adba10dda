"""Python's side of the tests of record formats and tables: checks files that the package wrote, and writes some that it must read."""
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import struct
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer import expected  # noqa: E402

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = TABLE[(crc ^ b) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Yields (offset, length with framing, payload) of each record, with both checksums checked."""
    at = 0
    while at < len(data):
        (n,), (check,) = struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
        assert masked(data[at:at + 8]) == check, f"checksum of the length at {at}"
        payload = data[at + 12:at + 12 + n]
        (check,) = struct.unpack_from("<I", data, at + 12 + n)
        assert masked(payload) == check, f"checksum of the record at {at}"
        yield at, n + 16, payload
        at += n + 16
    assert at == len(data)


def varint(data, at):
    v = shift = 0
    while True:
        b = data[at]
        v |= (b & 127) << shift
        at, shift = at + 1, shift + 7
        if b < 128:
            return v, at


def fields(data):
    """Yields (field number, value) of a protocol buffer: bytes, or a number."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            n, at = varint(data, at)
            assert at + n <= len(data)
            yield tag >> 3, data[at:at + n]
            at += n
        elif tag & 7 == 0:
            v, at = varint(data, at)
            yield tag >> 3, v
        else:
            raise ValueError(f"wire type {tag & 7}")


def example(data):
    """Returns the features of a serialised tf.train.Example, as lists."""
    out = {}
    for _, features in fields(data):
        for _, entry in fields(features):
            (_, key), (_, feature) = fields(entry)
            ((kind, values),) = fields(feature)
            if kind == 1:
                out[key.decode()] = [v for _, v in fields(values)]
            elif kind == 3:
                ((_, packed),), at, numbers = fields(values), 0, []
                while at < len(packed):
                    v, at = varint(packed, at)
                    numbers.append(v)
                out[key.decode()] = numbers
    return out


def read(path):
    with open(path, "rb") as f:
        return f.read()


def check_tfrecord(path, c, want):
    folder, name = os.path.split(path)
    index = read(os.path.join(os.path.dirname(folder), "index", os.path.basename(folder), name + ".idx")).decode()
    lines, k = [], 0
    for k, (at, n, payload) in enumerate(records(read(path))):
        features = example(payload)
        assert set(features) == {"image", "size"}, features.keys()
        (image,), (size,) = features["image"], features["size"]
        assert image == want[k].tobytes(), f"values of sample {k}"
        assert size == len(image), f"size of sample {k} is {size}"
        lines.append(f"{at} {n}\n")
    assert k + 1 == c["samples"]
    assert index == "".join(lines), "the index"


def check_indexed(path, c, want):
    off, sz = np.fromfile(path + ".off.idx", "<u8"), np.fromfile(path + ".sz.idx", "<u8")
    assert len(off) == len(sz) == c["samples"]
    data = np.memmap(path, np.uint8, "r")
    assert int(off[-1] + sz[-1]) == len(data)
    for k in range(c["samples"]):
        assert data[int(off[k]):int(off[k] + sz[k])].tobytes() == want[k].tobytes(), f"values of sample {k}"


def table_text(path, compression):
    """Opens a table as pandas does: by the extension."""
    if path.endswith(".gz"):
        data = gzip.open(path, "rb").read()
    elif path.endswith(".bz2"):
        data = bz2.open(path, "rb").read()
    elif path.endswith(".xz"):
        data = lzma.open(path, "rb").read()
    elif path.endswith(".zip"):
        with zipfile.ZipFile(path) as z:
            (name,) = z.namelist()
            assert z.testzip() is None
            data = z.read(name)
    else:
        data = read(path)
    assert path.endswith(".csv" + {"": "", "gzip": ".gz"}.get(compression, "." + compression)), path
    return data.decode("ascii")


def check_csv(path, c, want):
    text = table_text(path, c["compression"])
    assert text.endswith("\n") and "\r" not in text
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == c["samples"]
    kind = np.dtype(c["dtype"]).kind
    for k, row in enumerate(rows):
        if kind == "f":
            got = np.array([float(x) for x in row])
            assert (got == want[k].astype(np.float64)).all() if c["dtype"] == "float64" else (got.astype(c["dtype"]) == want[k]).all(), \
                f"values of sample {k}"
        else:
            assert [int(x) for x in row] == [int(x) for x in want[k]], f"values of sample {k}"
            assert row == [str(int(x)) for x in row], f"form of the numbers of sample {k}"


def check_npz(path, c, want):
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        assert [i.compress_type for i in z.infolist()] == [zipfile.ZIP_DEFLATED] * 2
    with np.load(path) as z:
        x, y = z["x"], z["y"]
    assert x.shape == (*c["dims"], c["samples"]) and x.dtype == np.dtype(c["dtype"])
    assert x.tobytes() == want.tobytes()
    assert y.dtype == np.int64 and y.shape == (c["samples"],) and not y.any()


def check_synthetic(path, c, _):
    assert read(path).decode() == str(c["number"])


def check(folder):
    bad, cases = 0, json.load(open(os.path.join(folder, "cases.json")))
    tests = {"tfrecord": check_tfrecord, "indexed_binary": check_indexed, "mmap_indexed_binary": check_indexed, "csv": check_csv,
             "npz": check_npz, "synthetic": check_synthetic}
    for c in cases:
        path = os.path.join(folder, c["file"])
        want = expected(read(path + ".raw"), c["dtype"]).reshape(c["samples"], -1)
        try:
            tests[c["format"]](path, c, want)
        except Exception as e:
            print(path, type(e).__name__, e)
            bad += 1
    print(len(cases), "cases,", bad, "bad")
    return bad


def put_varint(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes([*out, v])


def field(number, value):
    if isinstance(value, int):
        return put_varint(number << 3) + put_varint(value)
    return put_varint(number << 3 | 2) + put_varint(len(value)) + value


def framed(payload):
    n = struct.pack("<Q", len(payload))
    return n + struct.pack("<I", masked(n)) + payload + struct.pack("<I", masked(payload))


def features(*entries):
    return field(1, b"".join(field(1, field(1, key) + field(2, value)) for key, value in entries))


def write(folder):
    cases, rng = [], np.random.default_rng(3)

    def case(fmt, file, logical, data, index=(), compression="", bad=False):
        names = []
        for suffix, text in index:
            names.append(file + suffix)
            with open(os.path.join(folder, file + suffix), "wb") as f:
                f.write(text)
        with open(os.path.join(folder, file), "wb") as f:
            f.write(data)
        cases.append({"file": file, "format": fmt, "compression": compression, "index": names, "logical": logical, "bad": bad})

    def tf(file, payloads, logical, bad=False):
        data, lines = b"", ""
        for p in payloads:
            r = framed(p)
            lines += f"{len(data)} {len(r)}\n"
            data += r
        case("tfrecord", file, logical, data, [(".idx", lines.encode())], bad=bad)

    image = lambda n: field(1, field(1, rng.bytes(n)))
    numbers = lambda *v: field(3, b"".join(field(1, x) for x in v))  # not packed
    floats = field(2, field(1, struct.pack("<3f", 1, 2, 3)))
    sizes = [10, 3000, 0, 1, 127, 128, 20000, 5, 5, 5, 5, 700]
    tf("mixed.tfrecord", [features((b"size", numbers(n)), (b"image", image(n))) for n in sizes], sizes)
    tf("more-features.tfrecord", [features((b"label", numbers(1, 2, 3)), (b"bbox", floats), (b"image", image(99)), (b"text", image(55)))] * 3, [99] * 3)
    tf("two-values.tfrecord", [features((b"image", field(1, field(1, b"abc") + field(1, b"defgh"))))], [8])
    tf("several-messages.tfrecord", [features((b"size", numbers(7))) + features((b"image", image(7)))], [7])
    tf("no-image.tfrecord", [features((b"size", numbers(7)))], [0], bad=True)
    tf("wrong-kind.tfrecord", [features((b"image", numbers(7)))], [0], bad=True)
    tf("no-example.tfrecord", [rng.bytes(400)], [0], bad=True)

    for fmt in ("indexed_binary", "mmap_indexed_binary"):
        sizes = [100, 1, 5000, 4096, 8192, 3]
        ends = np.cumsum(sizes)
        pack = lambda x: np.asarray(x, "<u8").tobytes()
        case(fmt, "mixed." + fmt, sizes, rng.bytes(int(ends[-1])), [(".off.idx", pack(ends - sizes)), (".sz.idx", pack(sizes))])
        case(fmt, "beyond." + fmt, [0, 0], rng.bytes(100), [(".off.idx", pack([90, 101])), (".sz.idx", pack([11, 2**63]))], bad=True)
        case(fmt, "odd." + fmt, [0], rng.bytes(100), [(".off.idx", pack([0]) + b"1"), (".sz.idx", pack([5]))], bad=True)
        case(fmt, "unequal." + fmt, [0, 0], rng.bytes(100), [(".off.idx", pack([0, 5])), (".sz.idx", pack([5]))], bad=True)

    rows = rng.integers(-300, 300, (40, 700))
    text = "".join(",".join(map(str, r)) + "\n" for r in rows).encode()
    real = "".join(",".join(map(repr, map(float, r))) + "\n" for r in rng.normal(size=(9, 30))).encode()

    def zipped(data):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("table.csv", data)
        return out.getvalue()

    packers = {"": bytes, "gzip": lambda b: gzip.compress(b, mtime=0), "zip": zipped, "bz2": bz2.compress, "xz": lzma.compress}
    for compression, pack in packers.items():
        suffix = ".csv" + ("." + compression if compression else "")
        case("csv", "table" + suffix, [-1] * 40, pack(text), compression=compression)
        case("csv", "windows" + suffix, [-1] * 40, pack(text.replace(b"\n", b"\r\n")), compression=compression)
        case("csv", "real" + suffix, [-1] * 9, pack(real), compression=compression)
        case("csv", "one" + suffix, [-1], pack(b"5\n"), compression=compression)
        case("csv", "ragged" + suffix, [0, 0], pack(b"1,2,3\n4,5\n"), compression=compression, bad=True)
        case("csv", "binary" + suffix, [0], pack(rng.bytes(3000) + b"\n"), compression=compression, bad=True)
        case("csv", "empty" + suffix, [], pack(b""), compression=compression)
        if compression in ("gzip", "bz2", "xz"):
            case("csv", "members" + suffix, [-1] * 80, pack(text) + pack(text), compression=compression)
        if compression:
            case("csv", "plain" + suffix, [0], text, compression=compression, bad=True)
    json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))


if __name__ == "__main__":
    if sys.argv[1] == "check":
        sys.exit(1 if check(sys.argv[2]) else 0)
    write(sys.argv[2])
