# Writes structural.json: what NumPy and PyTorch make of small tensors, for TestStructuralFixtures.
#
#   python3 structural.py > structural.json
#
# Each case has operands and the result. What is done to them is here, and once more in the test.

import json
import numpy as np
import torch
import torch.nn.functional as F

rng = np.random.default_rng(1)
cases = {}


def some(*shape):
    return torch.from_numpy(np.round(rng.uniform(-2, 2, shape), 2))


def ints(n, *shape):
    return torch.from_numpy(rng.integers(0, n, shape))


def plain(x):
    x = torch.as_tensor(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x
    kind = {torch.float64: "float64", torch.int64: "int64", torch.bool: "bool"}[x.dtype]
    data = x.to(torch.float64).flatten().tolist()
    return {"type": kind, "shape": list(x.shape), "data": [round(v, 9) for v in data]}


def case(name, f, *operands):
    cases[name] = {"in": [plain(x) for x in operands], "want": plain(f(*operands))}


def assigned(at):
    def f(x, v):
        y = x.numpy().copy()
        y[at] = v.numpy()
        return y
    return f


x = some(2, 3, 4)
case("x[:, 1:, ::2]", lambda x: x[:, 1:, ::2], x)
case("x[..., -1]", lambda x: x[..., -1], x)
case("x[1, None, :-1]", lambda x: x[1, None, :-1], x)
case("x[::-1, :, 3:0:-2]", lambda x: x.numpy()[::-1, :, 3:0:-2], x)
case("x[:, 1:, ::2] = v", assigned(np.index_exp[:, 1:, ::2]), x, some(2, 1, 2))
case("x[..., -1] = v", assigned(np.index_exp[..., -1]), x, some(3))
case("x[::-1, 2] = v", assigned(np.index_exp[::-1, 2]), x, some(2, 4))

m = some(3, 5)
case("array_split", lambda m: np.array_split(m.numpy(), 3, 1)[1], m)
case("pad constant", lambda m: F.pad(m, (1, 2), value=7), m)
case("pad reflect", lambda m: np.pad(m.numpy(), ((0, 0), (4, 2)), mode="reflect"), m)
case("pad edge", lambda m: np.pad(m.numpy(), ((2, 1), (0, 0)), mode="edge"), m)
case("pad circular", lambda m: F.pad(m[None], (3, 5), mode="circular")[0], m)
case("tile", lambda m: np.tile(m.numpy(), (2, 1, 3)), m)
case("tile of fewer", lambda m: np.tile(m.numpy(), 2), m)
case("repeat", lambda m: np.repeat(m.numpy(), 2, axis=0), m)
case("flip", lambda m: m.flip(0, 1), m)
case("roll", lambda m: m.roll(-7, 1), m)
case("tril", lambda m: m.tril(-1), m)
case("triu", lambda m: m.triu(1), m)
case("diagonal", lambda m: torch.diagonal(m, -1), m)
case("diag_embed", lambda m: torch.diag_embed(m, 2), some(2, 3))

at = ints(5, 3, 2)
case("take_along_axis", lambda m, i: np.take_along_axis(m.numpy(), i.numpy(), 1), m, ints(5, 1, 2) - 5)
case("gather", lambda m, i: m.gather(1, i), m, at)
case("scatter", lambda m, i, s: m.scatter(1, i, s), m, torch.tensor([[4, 0], [1, 2], [0, 3]]), some(3, 2))
case("scatter_add", lambda m, i, s: m.scatter_add(1, i, s), m, at, some(3, 2))
case("index_copy", lambda m, i, s: m.index_copy(0, i, s), m, torch.tensor([2, 0]), some(2, 5))
case("index_add", lambda m, i, s: m.index_add(1, i, s), m, torch.tensor([4, 1, 4]), some(3, 3))
mask = m > 0.3
case("masked_fill", lambda m, k: m.masked_fill(k, -1), m, mask)
case("masked_select", lambda m, k: m.masked_select(k), m, mask[:1])

s = some(2, 4, 9)
case("conv1d", lambda s, w: F.conv1d(s, w, stride=2, padding=1, dilation=2, groups=2), s, some(6, 2, 3))
case("conv_transpose1d", lambda s, w: F.conv_transpose1d(s, w, stride=3, padding=1, output_padding=2), s[:1], some(4, 2, 3))
case("conv_transpose2d", lambda p, w: F.conv_transpose2d(p, w, stride=(2, 3), padding=(1, 0), output_padding=(0, 1), dilation=(1, 2), groups=2),
     some(2, 4, 3, 2), some(4, 3, 2, 2))
case("max_pool1d", lambda s: F.max_pool1d(s, 3, stride=2, padding=1), s)
case("avg_pool1d", lambda s: F.avg_pool1d(s, 3, stride=2, padding=1, count_include_pad=False), s)
p = some(1, 2, 5, 6)
case("adaptive_avg_pool2d", lambda p: F.adaptive_avg_pool2d(p, (3, 4)), p)
case("adaptive_avg_pool2d evenly", lambda p: F.adaptive_avg_pool2d(p, (5, 2)), p)
case("interpolate nearest", lambda p: F.interpolate(p, (8, 3), mode="nearest"), p)
case("interpolate bilinear", lambda p: F.interpolate(p, (9, 4), mode="bilinear", align_corners=False), p)

print("{")
print(",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in cases.items()))
print("}")
