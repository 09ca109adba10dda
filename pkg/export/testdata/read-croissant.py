"""Reads a Croissant document with MLCommons' own library and prints what it makes of it. FILE RECORD_SET"""
import json
import sys

import mlcroissant as mlc

dataset = mlc.Dataset(sys.argv[1])
meta = dataset.metadata
print(json.dumps({
    "name": meta.name,
    "errors": sorted(meta.issues.errors) if hasattr(meta, "issues") else sorted(meta.ctx.issues.errors),
    "warnings": sorted(meta.ctx.issues.warnings),
    "distribution": [node.id for node in meta.distribution],
    "record_sets": [node.id for node in meta.record_sets],
}))
