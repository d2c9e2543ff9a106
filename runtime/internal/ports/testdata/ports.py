"""Writes a file NAME.json for each port, or for those named: what PyTorch computes with the original.

    python3 ports.py VIT EXAMPLES [NAME ...]

VIT is a checkout of lucidrains/vit-pytorch, EXAMPLES one of pytorch/examples. It needs torch and einops. All is
computed in float64, without dropout. Weights and inputs come from fill, as those of the test. A tensor is written as
its sketch: 8 sums, the j-th of every eighth element from j on, each multiplied by a weight of its own.
"""

import importlib.util
import json
import math
import pathlib
import sys
import types

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double  # originals that round to float32 on their way
torch.FloatTensor = torch.DoubleTensor
vit, examples = map(pathlib.Path, sys.argv[1:3])
for name in ("vit_pytorch", "torchvision"):  # neither their other models nor data sets
    sys.modules[name] = types.ModuleType(name)
sys.modules["torchvision"].datasets = sys.modules["torchvision"].transforms = None


def original(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fill(k, *shape):
    """Numbers from -0.5 to 0.5 that look random: the k-th tensor of a shape."""
    i = torch.arange(math.prod(shape))
    return (((i * i * 7919 + i * k * 1049 + k * 31) % 65537) / 65537 - 0.5).reshape(shape)


def sketch(t):
    t = t.detach()
    terms = (t * fill(1, *t.shape)).reshape(-1)
    return [float("%.13g" % terms[j::8].sum()) for j in range(min(8, len(terms)))]


def write(name, model, outputs, loss=None, step=None, **more):
    """One forward and backward pass, one step of an optimiser, and the loss after it. Outputs is a function of the model."""
    model.train()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    params = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    for k, (n, p) in enumerate(params):
        scale = math.sqrt(12 / math.prod(p.shape[1:])) if n.endswith("weight") and p.dim() > 1 else 1
        p.data = fill(k, *p.shape) * scale
    loss = loss or (lambda y: (y * fill(2, *y.shape)).sum())
    y = outputs()
    before = loss(y)
    before.backward()
    d = {"shape": list(y.shape), "output": sketch(y), "loss": before.item(), "params": []}
    for n, p in params:
        d["params"].append({"name": n, "shape": list(p.shape), "grad": sketch(p.grad) if p.grad is not None else None})
    (step or torch.optim.SGD([p for _, p in params], lr=0.01)).step()
    d["after"] = loss(outputs()).item()
    d.update({k: f() for k, f in more.items()})
    path = pathlib.Path(__file__).parent / (name + ".json")
    rows = ",\n".join("  " + json.dumps(p) for p in d.pop("params"))
    path.write_text(json.dumps(d)[:-1] + ', "params": [\n' + rows + "\n]}\n")


def vit_3d():
    m = original(vit / "vit_pytorch/vit_3d.py").ViT(
        image_size=8, image_patch_size=4, frames=4, frame_patch_size=2, num_classes=5, dim=12, depth=2, heads=2,
        dim_head=4, mlp_dim=20)
    x = fill(7, 2, 3, 4, 8, 8)
    write("vit_3d", m, lambda: m(x))


ports = [vit_3d]
for port in ports:
    if port.__name__ in sys.argv[3:] or len(sys.argv) == 3:
        port()
