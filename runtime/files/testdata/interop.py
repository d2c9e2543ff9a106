"""Reads and writes files with the libraries that they come from.

    interop.py make FOLDER        writes the fixtures that are kept beside this file
    interop.py sums FILE          prints "name type shape sha256" for each tensor of a file, as the library has it
    interop.py copy FILE FILE     reads a file and writes it again, with the library

safetensors are read by the package safetensors, with PyTorch if it is there; npy and npz by NumPy.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
import safetensors
import safetensors.numpy

try:
    import safetensors.torch
    import torch
except ImportError:
    torch = None

SHORT = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "uint8": "U8", "bool": "BOOL"}


def read(path):
    """Returns {name: (type, shape, bytes)}."""
    if path.endswith(".safetensors"):
        if torch:
            return {n: (SHORT[str(t.dtype)[6:]], list(t.shape), t.contiguous().flatten().view(torch.uint8).numpy().tobytes())
                    for n, t in safetensors.torch.load_file(path).items()}
        return {n: (t["dtype"], t["shape"], bytes(t["data"]))
                for n, t in safetensors.deserialize(pathlib.Path(path).read_bytes())}
    arrays = {"": np.load(path)} if path.endswith(".npy") else dict(np.load(path))
    return {n: (SHORT[a.dtype.name], list(a.shape), a.tobytes()) for n, a in arrays.items()}


def pack(tensors, metadata=None):
    """Returns the file of {name: (type, shape, bytes)}, with the long names of types."""
    held = {n: np.frombuffer(data or b"\0", "u1") for n, (_, _, data) in tensors.items()}  # as long as specs point there
    specs = {n: safetensors.TensorSpec(dtype=dtype, shape=list(shape), data_ptr=held[n].ctypes.data, data_len=len(data))
             for n, (dtype, shape, data) in tensors.items()}
    return bytes(safetensors.serialize(specs, metadata))


def copy(path, to):
    if path.endswith(".safetensors"):
        if torch:
            safetensors.torch.save_file(safetensors.torch.load_file(path), to)
        else:
            long = {short: name for name, short in SHORT.items()}
            pathlib.Path(to).write_bytes(pack({n: (long[dtype], *rest) for n, (dtype, *rest) in read(path).items()}))
    elif path.endswith(".npy"):
        np.save(to, np.load(path))
    else:
        np.savez_compressed(to, **np.load(path))


def make(folder):
    folder = pathlib.Path(folder)
    numbers = np.arange(6).reshape(2, 3)
    all_types = {name: (numbers - 1).astype(name) for name in
                 ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]}
    raw = {n: (n, a.shape, a.tobytes()) for n, a in all_types.items()}
    raw["bfloat16"] = ("bfloat16", (2, 3), (all_types["float32"].view("<u4") >> 16).astype("<u2").tobytes())
    for name in ["int8", "int16", "uint16", "uint32"]:
        raw[name] = (name, (2, 3), (numbers - 1).astype(name).tobytes())
    raw["uint64"] = ("uint64", (1,), np.array([2**64 - 1], "u8").tobytes())
    raw["scalar"] = ("float32", (), np.float32(2.5).tobytes())
    raw["empty"] = ("float32", (0, 3), b"")
    (folder / "types.safetensors").write_bytes(pack(raw, {"made": "by safetensors"}))

    np.savez(folder / "types.npz", **all_types, **{n: (numbers - 1).astype(n) for n in ["int8", "int16", "uint16", "uint32"]},
             scalar=np.float32(2.5), empty=np.zeros((0, 3), "f4"))
    np.savez_compressed(folder / "packed.npz", zeros=np.zeros((50, 50)))
    np.save(folder / "fortran.npy", np.asfortranarray((numbers - 1).astype("<f4")))
    np.save(folder / "big.npy", np.asfortranarray((numbers - 1).astype(">i4")))
    for version in [(2, 0), (3, 0)]:
        with open(folder / f"version{version[0]}.npy", "wb") as f:
            np.lib.format.write_array(f, (numbers - 1).astype("f8"), version)
    np.save(folder / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(folder / "fields.npy", np.zeros(2, [("x", "f4"), ("y", "i8")]))
    np.save(folder / "complex.npy", np.zeros(2, "c8"))


def main(what, *args):
    if what == "make":
        make(*args)
    elif what == "copy":
        copy(*args)
    else:
        for name, (dtype, shape, data) in sorted(read(*args).items()):
            print(json.dumps(name), dtype, shape, hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main(*sys.argv[1:])
