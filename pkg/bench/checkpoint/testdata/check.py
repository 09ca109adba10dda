"""Checks archives with Python's own zipfile and pickletools, and with PyTorch where asked.

Standard input is JSON: {"torch": bool, "files": [{"path", "twin", "tensors": [{"name", "content", "elements", "type"}]}]}, where "content" is
a file that holds the bytes that the tensor must have and "twin" is where PyTorch writes its own archive of the same state.
"""
import hashlib
import json
import pickle
import pickletools
import sys
import zipfile


STORAGES = {"int8": "CharStorage", "uint8": "ByteStorage", "fp16": "HalfStorage", "bf16": "BFloat16Storage", "fp32": "FloatStorage",
            "fp64": "DoubleStorage"}
DTYPES = {"int8": "int8", "uint8": "uint8", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


class Call:
    """Stands for whatever the pickle builds: records the call instead of making it."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args):
        return (self.name, args)


class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        return Call(module + "." + name)

    def persistent_load(self, pid):
        return pid


def flatten(state, prefix=""):
    for key, value in state.items():
        if isinstance(value, dict):
            yield from flatten(value, prefix + key + "/")
        else:
            yield prefix + key, value


def content(t):
    with open(t["content"], "rb") as f:
        return f.read()


def check(spec):
    archive = zipfile.ZipFile(spec["path"])
    assert archive.testzip() is None, "checksum"
    raw = open(spec["path"], "rb").read()
    assert archive.read("archive/version") == b"3\n", "version"
    data = archive.read("archive/data.pkl")
    last = None
    for op, _, _ in pickletools.genops(data):
        assert op.proto <= 2, op.name
        last = op.name
    assert last == "STOP", last
    pickletools.dis(data, out=open("/dev/null", "w"))  # checks stack and memo
    found = list(flatten(Reader(archive.open("archive/data.pkl")).load()))
    assert [n for n, _ in found] == [t["name"] for t in spec["tensors"]], "names and order"
    for (name, (call, args)), t in zip(found, spec["tensors"]):
        (storage, kind, key, place, count), offset, shape, stride, grad, hooks = args
        n = t["elements"]
        assert call == "torch._utils._rebuild_tensor_v2", call
        assert (storage, kind.name, place, count) == ("storage", "torch." + STORAGES[t["type"]], "cpu", n), name
        assert (offset, shape, stride, grad) == (0, (n,), (1,), False), name
        assert hooks == ("collections.OrderedDict", ()), name
        info = archive.getinfo("archive/data/" + key)
        head = raw[info.header_offset:info.header_offset + 30]
        start = info.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
        assert start % 64 == 0, "alignment"
        assert raw[start:start + info.file_size] == content(t), name + ": content"


def check_torch(spec):
    import torch

    found = list(flatten(torch.load(spec["path"])))
    assert [n for n, _ in found] == [t["name"] for t in spec["tensors"]], "names and order"
    for (name, tensor), t in zip(found, spec["tensors"]):
        assert tensor.dtype == getattr(torch, DTYPES[t["type"]]) and tuple(tensor.shape) == (t["elements"],), name
        assert torch.isfinite(tensor).all(), name + ": not finite"
        assert tensor.element_size() * tensor.numel() == len(content(t)), name + ": size"
        assert tensor.view(torch.int8).numpy().tobytes() == content(t), name + ": content"
    state = {}
    for t in spec["tensors"]:
        tensor = torch.frombuffer(bytearray(content(t)), dtype=getattr(torch, DTYPES[t["type"]]))
        *path, key = t["name"].split("/")
        at = state
        for part in path:
            at = at.setdefault(part, {})
        at[key] = tensor
    with open(spec["twin"], "wb") as f:
        torch.save(fresh(state), f)
    assert open(spec["twin"], "rb").read() == open(spec["path"], "rb").read(), "PyTorch writes other bytes"


def fresh(state):
    """Keys as a program makes them: str(i) anew for each number, one object for each literal."""
    return {str(int(k)) if k.isdigit() else sys.intern(k): fresh(v) if isinstance(v, dict) else v for k, v in state.items()}


def check_big(sizes):
    """Prints size and SHA-256 of PyTorch's archive of zeros of these sizes, without writing it anywhere."""
    import torch

    class Sink:
        def __init__(self):
            self.hash, self.size = hashlib.sha256(), 0

        def write(self, b):
            self.hash.update(b)
            self.size += len(b)
            return len(b)

        def flush(self):
            pass

    sink = Sink()
    torch.save({chr(97 + i): torch.zeros(n, dtype=torch.int8) for i, n in enumerate(sizes)}, sink)
    print(sink.size, sink.hash.hexdigest())


job = json.load(sys.stdin)
for spec in job["files"] or []:
    check(spec)
    if job["torch"]:
        check_torch(spec)
if job.get("big"):
    check_big(job["big"])
