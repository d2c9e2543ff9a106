"""Writes pytorch.json, what PyTorch computes for small inputs: python3 pytorch.py > pytorch.json."""

import json

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
cases = []


def tensor(t):
    flat = t.detach().contiguous().reshape(-1)
    data = flat.tolist() if t.dtype in (torch.int64, torch.bool) else [float("%.12g" % v) for v in flat.tolist()]
    return {"shape": list(t.shape), "data": [float(v) for v in data]}


def case(name, tensors):
    cases.append({"name": name, "tensors": {k: tensor(v) for k, v in tensors.items()}})


def weights(like):
    """What results are multiplied by before they are summed, so that gradients differ."""
    return torch.cos(torch.arange(like.numel(), dtype=torch.float64)).reshape(like.shape)


def run(name, m, f, inputs, transposed=()):
    """One forward and backward pass of f; parameters in transposed are (out, in) in PyTorch."""
    for t in inputs.values():
        if t.is_floating_point():
            t.requires_grad_(True)
    outs = f(*inputs.values())
    outs = outs if isinstance(outs, tuple) else (outs,)
    sum((o * weights(o)).sum() for o in outs).backward()
    d = {}
    for k, t in inputs.items():
        d[k] = t
        if t.is_floating_point():
            d["grad." + k] = t.grad
    for i, o in enumerate(outs):
        d["y%d" % i] = o
    for k, p in m.named_parameters() if m else ():
        turn = (lambda t: t.T) if k.split(".")[-1].removesuffix("_reverse").rstrip("0123456789") in transposed else (lambda t: t)
        d["param." + k], d["paramgrad." + k] = turn(p), turn(p.grad)
    case(name, d)
    return d


m = nn.Linear(3, 4)
run("Dense", m, m, {"x": torch.randn(2, 2, 3)}, {"weight"})
m = nn.Conv2d(4, 6, (2, 3), stride=(1, 2), padding=(0, 1), groups=2)
run("Conv2D", m, m, {"x": torch.randn(2, 4, 4, 5)})
for name, m, shape in (
    ("BatchNorm [N C]", nn.BatchNorm1d(3), (5, 3)),
    ("BatchNorm [N C L]", nn.BatchNorm1d(3), (2, 3, 4)),
    ("BatchNorm [N C H W]", nn.BatchNorm2d(3), (2, 3, 2, 3)),
):
    nn.init.normal_(m.weight)
    nn.init.normal_(m.bias)
    m(torch.ones(shape).cumsum(0).cumsum(-1))
    run(name, m, m, {"x": torch.randn(shape) * 2 + 1})
    tensors = cases[-1]["tensors"]
    tensors["buffer.running_mean"], tensors["buffer.running_var"] = tensor(m.running_mean), tensor(m.running_var)
    m.eval()
    tensors["frozen"] = tensor(m(torch.linspace(-1, 2, torch.Size(shape).numel()).reshape(shape)))
for name, m, shape in (
    ("GroupNorm", nn.GroupNorm(2, 4), (2, 4, 3)),
    ("LayerNorm", nn.LayerNorm(5), (2, 3, 5)),
):
    nn.init.normal_(m.weight)
    nn.init.normal_(m.bias)
    run(name, m, m, {"x": torch.randn(shape)})
edges = torch.tensor([-1000, -30, -2, -0.5, 0, 0.3, 1, 25, 1000, 0])
for name, f in (
    ("LeakyReLU", lambda x: F.leaky_relu(x, 0.1)),
    ("ELU", lambda x: F.elu(x, 1.3)),
    ("GELU", F.gelu),
    ("SiLU", F.silu),
    ("Sigmoid", torch.sigmoid),
    ("Tanh", torch.tanh),
    ("Softplus", F.softplus),
    ("Softmax", lambda x: F.softmax(x, 0)),
    ("LogSoftmax", lambda x: F.log_softmax(x, 0)),
):
    run(name, None, f, {"x": edges.clone()})
m = nn.Embedding(5, 2, padding_idx=1)
run("PaddedEmbedding", m, m, {"x": torch.tensor([[0, 1, 4], [1, 0, 2]])})


def f_of(m):
    """m with its states, of which an LSTM has two, as operands and results of a function."""

    def f(x, h, c=None):
        y, s = m(x, h if c is None else (h, c))
        return (y, s) if c is None else (y, *s)

    return f


for name, m, states in (("LSTM", nn.LSTM(3, 4, 2, batch_first=True), 2), ("GRU", nn.GRU(3, 4, 2, batch_first=True), 1)):
    inputs = {"x": torch.randn(2, 3, 3), "h": torch.randn(2, 2, 4)}
    if states == 2:
        inputs["c"] = torch.randn(2, 2, 4)
    run(name, m, f_of(m), inputs, {"weight_ih_l", "weight_hh_l"})


class Heads(nn.Module):
    """Attention of 4 heads with separate projections, with 2 of keys and values if grouped."""

    def __init__(self, memory, kv):
        super().__init__()
        self.kv = kv
        self.q_proj, self.out_proj = nn.Linear(8, 8), nn.Linear(8, 8)
        self.k_proj, self.v_proj = nn.Linear(memory, 2 * kv), nn.Linear(memory, 2 * kv)

    def forward(self, x, memory=None, mask=None, causal=False):
        memory = x if memory is None else memory
        q, k, v = self.q_proj(x), self.k_proj(memory), self.v_proj(memory)
        split = lambda t, h: t.unflatten(-1, (h, 2)).transpose(1, 2)
        k, v = (split(t, self.kv).repeat_interleave(4 // self.kv, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(split(q, 4), k, v, attn_mask=mask, is_causal=causal)
        return self.out_proj(y.transpose(1, 2).flatten(2))


m = Heads(8, 4)
both = nn.MultiheadAttention(8, 4, batch_first=True)  # the two agree, so the first is what PyTorch calls attention
with torch.no_grad():
    both.in_proj_weight.copy_(torch.cat([m.q_proj.weight, m.k_proj.weight, m.v_proj.weight]))
    both.in_proj_bias.copy_(torch.cat([m.q_proj.bias, m.k_proj.bias, m.v_proj.bias]))
    both.out_proj.load_state_dict(m.out_proj.state_dict())
    x = torch.randn(2, 3, 8)
    assert torch.allclose(both(x, x, x)[0], m(x))
run("Attention", m, m, {"x": x}, {"weight"})
m = Heads(8, 2)
run("Attention grouped and causal", m, lambda x: m(x, causal=True), {"x": torch.randn(2, 4, 8)}, {"weight"})
m = Heads(3, 4)
mask = torch.tensor([[[[True, True, False, True, False]]], [[[True, True, True, True, True]]]])
run("Attention elsewhere", m, lambda x, memory, mask: m(x, memory, mask), {"x": torch.randn(2, 3, 8), "memory": torch.randn(2, 5, 3), "mask": mask}, {"weight"})

p, t = torch.tensor([[0.1, -3, 2], [1, 0.5, -0.2]]), torch.tensor([[0, 1, 2], [0.3, 1, 0.9]])
for reduction in ("mean", "sum", "none"):
    for name, f in (
        ("L1", F.l1_loss),
        ("MSE", F.mse_loss),
        ("Huber", lambda x, t, reduction: F.huber_loss(x, t, reduction=reduction, delta=0.7)),
        ("BCEWithLogits", F.binary_cross_entropy_with_logits),
        ("BCEWithLogits positive", lambda x, t, reduction: F.binary_cross_entropy_with_logits(x, t, reduction=reduction, pos_weight=torch.tensor([1, 2, 0.5]))),
    ):
        run("%s %s" % (name, reduction), None, lambda x: f(x, t, reduction=reduction), {"x": p.clone()})
    scores, labels = torch.randn(5, 4), torch.tensor([3, -100, 0, 2, 1])
    w = torch.tensor([1, 0.5, 2, 3])
    for name, settings in (
        ("CrossEntropy ignore", {}),
        ("CrossEntropy weights", {"weight": w}),
        ("CrossEntropy smoothing", {"label_smoothing": 0.2}),
        ("CrossEntropy all", {"weight": w, "label_smoothing": 0.2}),
    ):
        run("%s %s" % (name, reduction), None, lambda x: F.cross_entropy(x, labels, reduction=reduction, **settings), {"x": scores.clone()})
    run("NLL %s" % reduction, None, lambda x: F.nll_loss(x, labels, weight=w, reduction=reduction), {"x": scores.clone()})
logs, target = F.log_softmax(torch.randn(3, 4), -1), torch.tensor([[0.1, 0.2, 0.3, 0.4], [0, 0.5, 0.5, 0], [1, 0, 0, 0]])
run("KLDiv mean", None, lambda x: F.kl_div(x, target, reduction="batchmean"), {"x": logs})

m = nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)
run("Conv1D", m, m, {"x": torch.randn(2, 4, 7)})
m = nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
run("ConvTranspose1D", m, m, {"x": torch.randn(2, 4, 5)})
m = nn.ConvTranspose2d(4, 6, (2, 3), stride=(1, 2), padding=(0, 1), output_padding=(0, 1), dilation=(2, 1), groups=2)
run("ConvTranspose2D", m, m, {"x": torch.randn(2, 4, 3, 4)})
m = nn.InstanceNorm2d(3, affine=True)
nn.init.normal_(m.weight)
nn.init.normal_(m.bias)
run("InstanceNorm", m, m, {"x": torch.randn(2, 3, 2, 3)})
for name, f, shape in (
    ("MaxPool1D", lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 7)),
    ("AvgPool1D", lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), (2, 3, 7)),
    ("AdaptiveAvgPool2D", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 3, 5, 7)),
    ("AdaptiveAvgPool2D global", lambda x: F.adaptive_avg_pool2d(x, 1), (2, 3, 5, 7)),
):
    run(name, None, f, {"x": torch.randn(shape)})
run("HardSwish", None, F.hardswish, {"x": torch.cat([edges, torch.tensor([-2.9, 2.9, 3.5])])})
for name, m in (("PReLU", nn.PReLU()), ("PReLU channels", nn.PReLU(3))):
    nn.init.normal_(m.weight)
    run(name, m, m, {"x": torch.randn(2, 3, 4)})
for name, unit, states, both in (("RNN", nn.RNN, 1, False), ("LSTM both", nn.LSTM, 2, True), ("GRU both", nn.GRU, 1, True)):
    m = unit(3, 4, 2, batch_first=True, bidirectional=both)
    inputs = {"x": torch.randn(2, 3, 3), "h": torch.randn(4 if both else 2, 2, 4)}
    if states == 2:
        inputs["c"] = torch.randn(4, 2, 4)
    run(name, m, f_of(m), inputs, {"weight_ih_l", "weight_hh_l"})
p, t = torch.tensor([[0.01, 0.3, 0.99], [0.9, 0.5, 1e-9]]), torch.tensor([[0, 0.2, 1], [0.3, 1, 1]])
for reduction in ("mean", "sum", "none"):
    run("BCE %s" % reduction, None, lambda x: F.binary_cross_entropy(x, t, reduction=reduction), {"x": p.clone()})
    run("CosineEmbedding %s" % reduction, None,
        lambda x, other: F.cosine_embedding_loss(x, other, torch.tensor([1, -1, -1, 1, -1]), margin=0.1, reduction=reduction),
        {"x": torch.randn(5, 3), "other": torch.randn(5, 3)})
x = torch.randn(2, 3, 4)
x[0, 1] = 0
run("CosineSimilarity", None, lambda x, other: F.cosine_similarity(x, other, dim=-1), {"x": x, "other": torch.randn(3, 4)})

print("[")
print(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
print("]")
