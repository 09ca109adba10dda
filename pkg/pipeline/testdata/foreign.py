"""Makes data sets as other programs leave them, one folder each below the folder given: numpy, h5py, Pillow and Python's own modules."""
import bz2
import csv
import gzip
import io
import lzma
import os
import struct
import sys

import h5py
import numpy as np
from PIL import Image

root = sys.argv[1]
rng = np.random.default_rng(5)


def folder(*names):
    path = os.path.join(root, *names)
    os.makedirs(path, exist_ok=True)
    return path


# npz: arrays of any names and shapes, one compressed; strings among them. npy: any shape, Fortran order, structured elements.
for i in range(9):
    image = rng.integers(0, 256, (40 + i, 33, 3), dtype=np.uint8)
    save = np.savez_compressed if i % 2 else np.savez
    save(os.path.join(folder("npz"), f"scan{i}.npz"), image=image, label=np.array("cat"), spacing=np.ones(3))
    array = rng.random((7, 5 + i))
    if i == 3:
        array = np.asfortranarray(array)
    if i == 4:
        array = np.zeros(5, dtype=[("a", "<i4"), ("b", "<f8", (2,))])
    if i == 5:
        array = np.float64(3)
    np.save(os.path.join(folder("npy"), f"a{i}.npy"), array)
    # Five samples along the first axis, which is everybody's but DLIO's.
    np.save(os.path.join(folder("npy-batches"), f"b{i}.npy"), rng.random((5, 8, i + 1)))
    np.savez(os.path.join(folder("npz-batches"), f"b{i}.npz"), images=rng.random((5, 8, i + 1)), labels=np.zeros(5), names=np.array(["a"] * 5))

# hdf5: data sets of any name, of equal length, with attributes and groups beside; chunked and compressed ones as whole files.
for i in range(9):
    with h5py.File(os.path.join(folder("hdf5"), f"part{i}.h5"), "w") as f:
        f.create_dataset("labels", data=np.arange(6))
        f.create_dataset("images", data=rng.integers(0, 256, (6, 16, 16), dtype=np.uint8)).attrs["unit"] = "HU"
        f.create_group("meta").create_dataset("x", data=np.zeros(3))
    with h5py.File(os.path.join(folder("hdf5-chunked"), f"{i}.hdf5"), "w") as f:
        f.create_dataset("x", data=rng.random((4 + i, 10)), chunks=(2, 5), compression="gzip")

# Images of different sizes in folders of classes, jpeg as cameras call them.
for i in range(12):
    pixels = rng.integers(0, 256, (30 + i, 40, 3), dtype=np.uint8)
    cls = "cat" if i % 2 else "dog"
    Image.fromarray(pixels).save(os.path.join(folder("jpeg", "train", cls), f"IMG_{i}.JPG"), "JPEG", progressive=i % 3 == 0, quality=90)
    Image.fromarray(pixels).save(os.path.join(folder("png"), f"{i}.png"))
for i in range(4):
    Image.fromarray(rng.integers(0, 256, (9, 9), dtype=np.uint8)).save(os.path.join(folder("jpeg", "valid", "cat"), f"IMG_{i}.jpeg"), "JPEG")

# csv with a header, quoted text and dates; the same compressed.
for i in range(8):
    text = io.StringIO()
    out = csv.writer(text)
    out.writerow(["id", "name", "when", "größe"])
    for k in range(20 + i):
        out.writerow([k, 'he said "no", twice', "2026-11-30 12:00", 1.5 * k])
    with open(os.path.join(folder("csv"), f"t{i}.csv"), "w") as f:
        f.write(text.getvalue())
    with gzip.open(os.path.join(folder("csv-gz"), f"t{i}.csv.gz"), "wt") as f:
        f.write(text.getvalue())
    with bz2.open(os.path.join(folder("csv-bz2"), f"t{i}.csv.bz2"), "wt") as f:
        f.write(text.getvalue())
    with lzma.open(os.path.join(folder("csv-xz"), f"t{i}.csv.xz"), "wt") as f:
        f.write(text.getvalue())


def crc(data):
    table = crc.table
    c = 0xFFFFFFFF
    for b in data:
        c = table[(c ^ b) & 0xFF] ^ (c >> 8)
    c ^= 0xFFFFFFFF
    return ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF


crc.table = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    crc.table.append(n)

# tfrecord shards: records of any content and length, without an index; and indexed files in Megatron's manner.
for i in range(6):
    with open(os.path.join(folder("tfrecord"), f"shard-{i:05d}.tfrecord"), "wb") as f:
        for k in range(4):
            record = rng.bytes(100 + 10 * i + k)
            head = struct.pack("<Q", len(record))
            f.write(head + struct.pack("<I", crc(head)) + record + struct.pack("<I", crc(record)))
    texts = [rng.bytes(int(n)) for n in rng.integers(1, 400, 7)]
    name = os.path.join(folder("indexed"), f"text{i}.bin")
    with open(name, "wb") as f:
        f.write(b"".join(texts))
    sizes = [len(t) for t in texts]
    with open(name + ".sz.idx", "wb") as f:
        f.write(np.array(sizes, dtype="<u8").tobytes())
    with open(name + ".off.idx", "wb") as f:
        f.write(np.array([sum(sizes[:k]) for k in range(len(sizes))], dtype="<u8").tobytes())

# What nobody knows a format of, an empty file among it; and images with notes beside them.
for i in range(9):
    with open(os.path.join(folder("anything", f"d{i % 3}"), f"x{i}"), "wb") as f:
        f.write(rng.bytes(1000 * i))
    Image.fromarray(rng.integers(0, 256, (9, 9), dtype=np.uint8)).save(os.path.join(folder("mixed"), f"{i}.png"))
with open(os.path.join(folder("mixed"), "annotations.json"), "w") as f:
    f.write("{}")
