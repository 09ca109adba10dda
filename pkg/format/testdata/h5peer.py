"""h5py's side of the tests: checks files that the package wrote, and writes files that the package must read."""
import json
import os
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer import expected  # noqa: E402


def check(folder):
    """Opens every case of folder/cases.json, and compares names, shapes, element types and values; h5dump must accept it too."""
    bad = 0
    cases = json.load(open(os.path.join(folder, "cases.json")))
    for c in cases:
        path, k = os.path.join(folder, c["file"]), c["datasets"]
        want = expected(open(path + ".raw", "rb").read(), c["dtype"])
        shape = tuple(c["shape"])
        with h5py.File(path, "r") as f:
            names = [f"records_{i}" for i in range(k)]
            if sorted(f) != sorted(names + ["labels"]):
                print(path, "holds", list(f))
                bad += 1
                continue
            y = f["labels"]
            if y.dtype != np.int64 or y.shape != shape[:1] or y[:].any():
                print(path, "labels differ", y.dtype, y.shape)
                bad += 1
            parts = [f[n] for n in names]
            for x in parts:
                storage = (x.chunks, x.compression, x.compression_opts, x.maxshape)
                wanted = (tuple(c["chunk"]) if c.get("chunk") else None, "gzip" if c.get("level") else None, c.get("level"),
                          tuple(c.get("max") or shape))
                if x.dtype != np.dtype(c["dtype"]) or x.shape != shape or storage != wanted:
                    print(path, "is", x.dtype, x.shape, storage, "not", c["dtype"], shape, wanted)
                    bad += 1
            if b"".join(x[:].tobytes() for x in parts) != want.tobytes():
                print(path, "values differ from the stream's")
                bad += 1
        if c.get("dump"):
            out = subprocess.run(["h5dump", "-p", "-H", "-B", path], capture_output=True, text=True)
            if out.returncode or "records_0" not in out.stdout or out.stderr:
                print(path, "h5dump:", out.stderr)
                bad += 1
    print(len(cases), "cases,", bad, "bad")
    return bad


def dlio(path, x, k, **how):
    """Writes as DLIO's generator does: the same array in each data set."""
    with h5py.File(path, "w", libver="latest") as f:
        for i in range(k):
            f.create_dataset(f"records_{i}", x.shape, dtype=x.dtype, data=x, **how)
        f.create_dataset("labels", data=[0] * x.shape[0])


def sizes():
    """Prints what DLIO's files of each [shape, element type, data sets, how they are stored] on standard input measure."""
    for shape, name, k, *how in json.load(sys.stdin):
        path = os.path.join(sys.argv[2], "size.hdf5")
        dlio(path, np.zeros(shape, name), k, **{key: tuple(v) for h in how for key, v in h.items()})
        print(os.path.getsize(path))


def chunks():
    """Prints the chunk that h5py chooses for each [shape, bytes of an element] on standard input."""
    from h5py._hl.filters import guess_chunk
    for shape, element in json.load(sys.stdin):
        print("[" + " ".join(map(str, guess_chunk(tuple(shape), None, element))) + "]")


def write(folder):
    """Writes files of many kinds; cases.json tells what they hold."""
    cases, rng = [], np.random.default_rng(1)

    def case(file, x, k=1, good=True, library=False):
        row = x.nbytes // x.shape[0] * k
        cases.append({"file": file, "samples": x.shape[0], "bytes": row, "datasets": k, "good": good, "library": library})
        return os.path.join(folder, file)

    for name in ("bool", "uint8", "int64", "float16", "float32", "complex128"):
        for shape in ((1, 5, 7), (4, 30, 41), (2, 200, 300, 3), (9,), (300, 1000)):
            x = (rng.random(shape) * 100).astype(name)
            stem = f"{name}-{'x'.join(map(str, shape))}"
            for k in (1, 3):
                dlio(case(f"{stem}-{k}.hdf5", x, k), x, k)
            with h5py.File(case(f"{stem}-old.hdf5", x), "w") as f:
                f.create_dataset("records", data=x)
                f.create_dataset("labels", data=[0] * x.shape[0])
    x = rng.integers(0, 255, (5, 60, 50), np.uint8)
    for k in (7, 8, 9, 40, 46, 100, 400, 1000):
        dlio(case(f"sets-{k}.hdf5", x[:, :2, :3], k), x[:, :2, :3], k)
    for k in (5, 40, 300):
        with h5py.File(case(f"sets-old-{k}.hdf5", x, k), "w") as f:
            for i in reversed(range(k)):
                f.create_dataset(f"records_{i}", data=x)
    with h5py.File(case("order.hdf5", x, 2), "w", libver="latest", track_order=True) as f:
        f["soft"] = h5py.SoftLink("/records_0")
        f["records_5"] = h5py.ExternalLink("other.hdf5", "/x")
        for name in ("records_1", "unrelated", "records_0", "records_00", "records_x", "recordsx", "records_2"):
            f.create_dataset(name, data=x)
            f[name].attrs["note"] = "n" * 2000
    with h5py.File(case("attributes-old.hdf5", x), "w") as f:
        f.attrs["note"] = "n" * 3000
        d = f.create_dataset("records_0", data=x)
        for i in range(30):
            d.attrs[f"note{i}"] = "n" * 500
    with h5py.File(case("big-endian.hdf5", x.astype(">f4")), "w") as f:
        f.create_dataset("records_0", data=x.astype(">f4"))
    with h5py.File(case("largest.hdf5", x), "w", libver=("v108", "v108")) as f:
        f.create_dataset("records_0", data=x)
    # What only libhdf5 reads.
    for stem, libver in (("chunked", None), ("chunked-latest", "latest")):
        for i, how in enumerate(({"chunks": (1, 20, 20)}, {"chunks": (5, 60, 50)}, {"chunks": True, "compression": "gzip"},
                                 {"compression": "gzip", "compression_opts": 9, "shuffle": True}, {"maxshape": (None, 60, 50)},
                                 {"maxshape": (5, 100, None)}, {"chunks": (2, 60, 50), "fletcher32": True})):
            with h5py.File(case(f"{stem}-{i}.hdf5", x, library=True), "w", libver=libver) as f:
                f.create_dataset("records_0", data=x, **how)
    with h5py.File(case("compact.hdf5", x[:, :2, :2], library=True), "w") as f:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        part = np.ascontiguousarray(x[:, :2, :2])
        d = h5py.h5d.create(f.id, b"records_0", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple(part.shape), plist)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, part)
    with h5py.File(case("user-block.hdf5", x, good=False), "w", userblock_size=512) as f:
        f.create_dataset("records_0", data=x)
    # What nothing reads as samples.
    with h5py.File(case("empty.hdf5", x, good=False), "w") as f:
        pass
    with h5py.File(case("other.hdf5", x, good=False), "w", libver="latest") as f:
        f.create_dataset("images", data=x)
    with h5py.File(case("group.hdf5", x, good=False), "w") as f:
        f.create_group("records_0")
    with h5py.File(case("scalar.hdf5", x, good=False), "w") as f:
        f["records_0"] = 7
    with h5py.File(case("strings.hdf5", x, good=False), "w") as f:
        f.create_dataset("records_0", data=["a", "b"] * 4, dtype=h5py.string_dtype())
    with h5py.File(case("unwritten.hdf5", x, good=False), "w") as f:
        f.create_dataset("records_0", shape=x.shape, dtype=x.dtype)
    with h5py.File(case("external.hdf5", x, good=False), "w") as f:
        f.create_dataset("records_0", data=x, external=[(os.path.join(folder, "external.raw"), 0, h5py.h5f.UNLIMITED)])
    json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))


if __name__ == "__main__":
    what, *args = sys.argv[1:]
    if what == "check":
        sys.exit(1 if check(*args) else 0)
    {"chunks": chunks, "sizes": lambda _: sizes(), "write": write}[what](*args)
