"""Writes operations.json: what PyTorch and NumPy compute, for TestLikePyTorch.

python operations.py > operations.json
"""
import json
import math

import numpy as np
import torch

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
cases = []


def number(v):
    return float(v) if math.isfinite(v) else str(float(v))


def array(t):
    return {"shape": list(t.shape), "data": [number(v) for v in t.detach().double().flatten().tolist()]}


def case(op, f, *xs, args=(), grad=False):
    xs = [torch.as_tensor(x) for x in xs]
    if grad:
        xs = [x.clone().requires_grad_() for x in xs]
    y = f(*xs)
    c = {"op": op, "args": [number(a) for a in args], "in": [array(x) for x in xs], "out": array(torch.as_tensor(y))}
    if grad:
        w = torch.arange(1, y.numel() + 1).double().reshape(y.shape)
        (y * w).sum().backward()
        c["grads"] = [array(x.grad) for x in xs]
    cases.append(c)


inf, nan = math.inf, math.nan
special = torch.tensor([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 8, 1000, 1e-3, 1e300, -1e300, 1e-310, inf, -inf, nan])
for op, f in {
    "Log2": torch.log2, "Log10": torch.log10, "Exp2": torch.exp2, "Tan": torch.tan, "Asin": torch.asin, "Acos": torch.acos, "Atan": torch.atan,
    "Sinh": torch.sinh, "Cosh": torch.cosh, "Asinh": torch.asinh, "Acosh": torch.acosh, "Atanh": torch.atanh, "Rsqrt": torch.rsqrt,
    "Trunc": torch.trunc, "Softplus": lambda x: torch.logaddexp(x, torch.zeros(())), "HardSigmoid": torch.nn.functional.hardsigmoid,
    "IsNaN": torch.isnan, "IsInf": torch.isinf, "IsFinite": torch.isfinite,
}.items():
    case(op, f, special[(special.abs() < 1e299) | ~special.isfinite()] if op == "Tan" else special)
grid = torch.tensor([0.0, 1, -1, 2.5, -2.5, 3, -7, inf, nan])
for op, f in {"Fmod": torch.fmod, "Remainder": torch.remainder, "FloorDiv": torch.floor_divide, "Atan2": torch.atan2, "Hypot": torch.hypot, "LogAddExp": torch.logaddexp}.items():
    case(op, f, grid.reshape(-1, 1), grid)
case("Clamp", lambda x: x.clamp(-1, 2), special, args=(-1, 2))
case("Clamp", lambda x: x.clamp(-1, 2), torch.tensor([-1.0, 2, 0, -3, 5]), args=(-1, 2), grad=True)
case("LeakyReLU", lambda x: torch.nn.functional.leaky_relu(x, 0.1), torch.tensor([-2.0, 0, 3]), args=(0.1,), grad=True)
case("ELU", lambda x: torch.nn.functional.elu(x, 0.5), torch.tensor([-2.0, 0, 3, 800]), args=(0.5,), grad=True)
case("Lerp", lambda x, y: x.lerp(y, 0.25), torch.randn(3), torch.randn(2, 1), args=(0.25,), grad=True)

for shape in [(5,), (3, 4), (2, 3, 2), (1, 1)]:
    x = torch.randn(shape)
    dim = len(shape) - 1
    if shape != (1, 1):
        case("Var", lambda x: x.var(dim, correction=1), x, args=(1, dim), grad=True)
        case("Std", lambda x: x.std(dim, correction=0), x, args=(0, dim), grad=True)
        case("StdKeep", lambda x: x.std(0, correction=0, keepdim=True), x, args=(0, 0), grad=True)
    for p in (1, 2, 3, inf):
        case("VectorNorm", lambda x: torch.linalg.vector_norm(x, p, dim), x, args=(p, dim), grad=True)
    case("CumProd", lambda x: x.cumprod(0), x, args=(0,), grad=True)
    case("CumMax", lambda x: x.cummax(0).values, x, args=(0,), grad=True)
    case("CumMin", lambda x: x.cummin(dim).values, x, args=(dim,), grad=True)
    for q in (0, 0.3, 0.5, 1):
        case("Quantile", lambda x: x.quantile(q, dim), x, args=(q, dim), grad=True)
case("CumProd", lambda x: x.cumprod(0), torch.tensor([2.0, 3, 0, 4, 0, 5]), args=(0,), grad=True)
case("CumProd", lambda x: x.cumprod(0), torch.tensor([0.0, 3, 2]), args=(0,), grad=True)
case("CumMax", lambda x: x.cummax(0).values, torch.tensor([1.0, 1, 3, 2, 3, nan, 5]), args=(0,))
case("CumMax", lambda x: x.cummax(0).values, torch.tensor([1.0, 1, 3, 2, 3, 0]), args=(0,), grad=True)
case("Var", lambda x: x.var(0, correction=0), torch.full((4,), 1e8) + torch.arange(4), args=(0, 0))
case("Median", lambda x: np.median(x, 1), torch.tensor([[1.0, 5, 2, 4], [1, inf, inf, inf], [1, nan, 2, 3], [inf, -inf, 2, 2]]), args=(1,))
case("Outer", lambda x, y: x.outer(y), torch.randn(3), torch.randn(2), grad=True)
case("Diag", lambda x: x.diag(), torch.randn(3), grad=True)
case("Diag", lambda x: x.diagonal(dim1=-2, dim2=-1), torch.randn(2, 3, 4), grad=True)
case("Diag", lambda x: x.diagonal(), torch.randn(4, 2), grad=True)
case("Trace", lambda x: x.trace(), torch.randn(3, 4), grad=True)
case("IsClose", lambda x, y: x.isclose(y, 0.1, 0.01), torch.tensor([1.0, 1.2, 0.005, inf, inf, nan, 5]), torch.tensor([1.05, 1.0, 0, inf, -inf, nan, inf]), args=(0.1, 0.01))

for text, *shapes in [
    ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 3, 2), (2, 2, 4)), ("ij,kj", (2, 3), (4, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("ij->ji", (2, 3)),
    ("...ij->...ji", (2, 3, 4)), ("b...i,ij->b...j", (2, 3, 4), (4, 5)), ("i,i->", (4,), (4,)), ("i,j->ij", (2,), (3,)), ("ijk->", (2, 3, 2)), ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("...i,...i->...", (2, 1, 3), (4, 3)), ("ij,k->j", (2, 3), (4,)),
    ("i,->i", (3,), ()), ("ba", (2, 3)), ("aab,b->a", (2, 2, 3), (3,)),
]:
    case("Einsum " + text, lambda *xs: torch.einsum(text, *xs), *[torch.randn(s) for s in shapes], grad=True)

print(json.dumps(cases, separators=(",", ":")).replace("},{\"op\"", "},\n{\"op\""))
