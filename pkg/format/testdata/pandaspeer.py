"""pandas' side of the tests of tables: reads files that the package wrote, and writes some that it must read."""
import json
import os
import sys

import numpy as np
import pandas as pd

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peer import expected  # noqa: E402


def check(folder):
    bad, cases = 0, json.load(open(os.path.join(folder, "cases.json")))
    for c in cases:
        path, dtype = os.path.join(folder, c["file"]), np.dtype(c["dtype"])
        with open(path + ".raw", "rb") as f:
            want = expected(f.read(), c["dtype"]).reshape(c["samples"], -1)
        # As DLIO's reader does: the compression is told by the name. Numbers of floating point shall be read to the last bit.
        as_type = {"float16": "float32", "bool": "uint8"}.get(c["dtype"], c["dtype"])
        try:
            table = pd.read_csv(path, header=None, dtype=as_type, float_precision="round_trip")
            got = table.to_numpy()
            assert got.shape == want.shape, f"shape {got.shape}, want {want.shape}"
            assert (got.astype(dtype) == want).all(), "values"
        except Exception as e:
            print(path, type(e).__name__, e)
            bad += 1
    print("pandas", pd.__version__, len(cases), "cases,", bad, "bad")
    return bad


def write(folder):
    cases, rng = [], np.random.default_rng(4)
    tables = {
        "bytes": pd.DataFrame(rng.integers(0, 256, (30, 400), dtype=np.uint8)),
        "long": pd.DataFrame(rng.integers(-2**63, 2**63 - 1, (9, 2000))),
        "real": pd.DataFrame(rng.normal(size=(12, 50))),
        "single": pd.DataFrame(rng.random((12, 50), dtype=np.float32)),
        "bool": pd.DataFrame(rng.integers(0, 2, (5, 7)).astype(bool)),
        "one": pd.DataFrame([[7]]),
    }
    for name, table in tables.items():
        for compression, ending in {"": "", "gzip": ".gz", "bz2": ".bz2", "zip": ".zip", "xz": ".xz"}.items():
            file = f"{name}.csv{ending}"
            table.to_csv(os.path.join(folder, file), header=False, index=False)
            cases.append({"file": file, "format": "csv", "compression": compression, "index": [], "logical": [-1] * len(table), "bad": False})
    json.dump(cases, open(os.path.join(folder, "cases.json"), "w"))


if __name__ == "__main__":
    if sys.argv[1] == "check":
        sys.exit(1 if check(sys.argv[2]) else 0)
    write(sys.argv[2])
