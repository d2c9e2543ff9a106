"""Counts which PyTorch example files could be written with this library, by the names that they call.

    git clone https://github.com/pytorch/examples            # 77f55b912142e11fcfdf5b530231fb9c52f181e8
    git clone https://github.com/d2l-ai/d2l-en               # 23d7a5aecceee57d1292c56e90cce307f183bb0a
    git clone https://github.com/lucidrains/vit-pytorch      # 69d24fe9e3024c0d4b02761123b8583a24ebed1e
    git clone https://github.com/karpathy/nanoGPT            # 3adf61e154c3fe3fca428ad6bc3818b27a3b8291
    python3 coverage.py FOLDER_OF_ALL_FOUR > results.txt

A file counts if it has six or more calls of tensors, layers, losses, initialisers or optimisers: names in torch,
torch.nn and torch.optim, and methods of tensors that are no methods of Python's own types. Data, files, devices, several
processes, compilation and inspection of programs are not counted ("loading and saving apart"). Of the book (d2l-en)
the code of the PyTorch tabs counts, without what its own package d2l does. A file can be written if each such name
stands in the column "PyTorch" of internal/docpages/operations.txt above "Missing", or in SPELT below: what Go or this
library has no function for, since it is spelt differently.
"""
import ast
import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OPERATIONS = os.path.join(HERE, "..", "..", "internal", "docpages", "operations.txt")

# Not counted: the same in every library, or part of data, files, devices and processes.
APART = re.compile(
    r"torch\.(distributed|fx|utils\.(data|checkpoint|tensorboard|cpp|collect)|cuda|accelerator|multiprocessing|save|load$|jit|compile|backends"
    r"|amp|futures|serialization|profiler|mps|version|set_|get_|hub|autograd\.(profiler|Function)|library|onnx|export|quantization|ao|xpu|cpu"
    r"|device|datasets|transforms|io|models|ops|classes|Size|inference_mode)|torchvision|torchaudio|torchtext|torcheval"
    r"|torch\.nn\.(parallel|DataParallel|attention)|torch\.optim\.(step|zero_grad)"
)

# Spelt differently, with no function of its own.
SPELT = set("""
    torch.no_grad torch.enable_grad torch.is_tensor torch.is_grad_enabled torch.float32 torch.float64 torch.float torch.double torch.float16
    torch.bfloat16 torch.half torch.int32 torch.int64 torch.long torch.int torch.uint8 torch.bool torch.finfo torch.iinfo torch.empty torch.Generator
    torch.initial_seed torch.nn.functional torch.nn.Module torch.nn.functional.tanh torch.nn.functional.sigmoid torch.nn.Softmax2d
    Tensor.new_zeros Tensor.new_tensor Tensor.new_ones Tensor.resize Tensor.share_memory_ torch.optim.Optimizer Tensor.is_cuda
""".split())

# Methods that Python's lists, dicts, texts and arrays have as well.
PYTHONS = set(dir(list)) | set(dir(dict)) | set(dir(str)) | set(dir(set)) | {"numpy", "add", "write", "read", "close", "size", "apply", "type", "share_memory_"}


def known():
    """The PyTorch names of the page, spelt out, and the methods among them."""
    full, methods = set(SPELT), set()
    for line in open(OPERATIONS, encoding="utf-8"):
        if line.startswith("# Missing"):
            break
        if line.startswith("#") or "|" not in line:
            continue
        for name in line.rsplit("| ", 1)[-1].strip().split(", "):
            name = re.sub(r"\(.*", "", name).strip()
            name = re.sub(r"^F\.", "torch.nn.functional.", name)
            name = re.sub(r"^(nn|optim)\.", r"torch.\1.", name)
            full.add(name)
            last = name.rsplit(".", 1)[-1]
            if name.startswith(("torch.nn.functional.", "Tensor.")) or name.count(".") == 1 or name.startswith("torch.linalg."):
                methods.add(last)  # most functions are methods, functions of torch and of torch.nn.functional as well
                full.update({"torch." + last, "torch.nn.functional." + last})
    return full, methods


def code(path):
    """The Python of a file; of the book that of the PyTorch tabs."""
    text = open(path, encoding="utf-8", errors="replace").read()
    if path.endswith(".py"):
        return text
    blocks = []
    for block in re.findall(r"```\{\.python \.input[^}]*\}\n(.*?)```", text, re.S):
        tab = re.search(r"(?:#@tab|%%tab) ([^\n]*)", block)
        if tab and not re.search(r"pytorch|all\b", tab[1]):
            continue
        blocks.append("\n".join(line for line in block.split("\n") if not re.match(r"\s*(%|!|#@)", line)))
    return "\n".join(blocks)


def uses(source, methods):
    """How often each name is called."""
    tree = ast.parse(source)
    alias = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim"}
    for n in ast.walk(tree):
        if isinstance(n, ast.Import):
            for a in n.names:
                if a.name.split(".")[0] == "torch":
                    alias[a.asname or "torch"] = a.name if a.asname else "torch"
        elif isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] in ("torch", "torchvision", "torchaudio", "torchtext"):
            for a in n.names:
                alias[a.asname or a.name] = n.module + "." + a.name

    def full(e):
        if isinstance(e, ast.Name):
            return alias.get(e.id)
        if isinstance(e, ast.Attribute):
            of = full(e.value)
            return of and of + "." + e.attr
        return None

    names = collections.Counter()
    for n in ast.walk(tree):
        if not isinstance(n, ast.Call):
            continue
        name = full(n.func)
        if name:
            names[name] += 1
        elif isinstance(n.func, ast.Attribute) and n.func.attr not in PYTHONS and n.func.attr in methods:
            names["Tensor." + n.func.attr] += 1
    return names


# Methods of tensors that this library lacks, so that their use is seen.
LACKING = {"unfold", "fold", "to_sparse", "coalesce", "erfinv", "lgamma", "digamma", "index_fill", "istft", "stft", "cross", "cdist", "logdet", "pinverse", "geometric_",
           "exponential_", "cauchy_", "log_normal_", "renorm", "kthvalue", "mode", "histc", "dist", "polygamma", "nansum", "nanmean", "logcumsumexp"}


def main(root):
    names, methods = known()
    rows, missing = [], collections.Counter()
    for folder, _, files in sorted(os.walk(root)):
        for file in sorted(files):
            path = os.path.join(folder, file)
            rel = os.path.relpath(path, root)
            if not (file.endswith(".py") or file.endswith(".md") and "d2l" in rel) or file in ("mxnet.py", "jax.py", "tensorflow.py", "setup.py"):
                continue
            source = code(path)
            if "torch" not in source:
                continue
            try:
                used = uses(source, methods | LACKING)
            except SyntaxError:
                print("not parsed:", rel, file=sys.stderr)
                continue
            used = {n: k for n, k in used.items() if not APART.match(n)}
            if sum(used.values()) < 6:
                continue
            gone = sorted(n for n in used if n not in names and not (n.startswith("Tensor.") and n[7:] in methods))
            missing.update(gone)
            rows.append((rel, gone))
    for kind in (".py", ".md"):
        some = [gone for rel, gone in rows if rel.endswith(kind)]
        print(f"{kind}: {sum(not gone for gone in some)} of {len(some)} files can be written")
    print("\nmissing, with the number of files:", ", ".join(f"{n} {k}" for n, k in missing.most_common()))
    print("\nfiles that can't be written:")
    for rel, gone in rows:
        if gone:
            print(f"  {rel}: {', '.join(gone)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: coverage.py FOLDER")
    main(sys.argv[1])
