"""Writes trajectories.json: what PyTorch makes of a small network in 20 steps, with each optimiser.

Run it with PyTorch 2 on the CPU:

    python runtime/optim/testdata/trajectories.py > runtime/optim/testdata/trajectories.json

The network has 2 inputs, 3 hidden units with tanh, and 1 output; the loss is the mean squared error of 5 samples. All
numbers of the problem are multiples of 1/64, so float32 holds them.
"""
import json
import math
import warnings

import torch

warnings.filterwarnings("ignore")
torch.manual_seed(1)
torch.set_num_threads(1)

SHAPES = [(2, 3), (3,), (3, 1), (1,)]
KEPT = [1, 2, 3, 5, 10, 20]  # the steps after which parameters are written


def drawn(*shape):
    return torch.round(torch.randn(*shape, dtype=torch.float64) * 64) / 64


X, Y = drawn(5, 2), drawn(5, 1)
START = [drawn(*s) for s in SHAPES]


def flat(ts):
    return [v for t in ts for v in t.detach().reshape(-1).tolist()]


def train(dtype, make, clip=None, schedule=None, ema=None, swa=False):
    x, y = X.to(dtype), Y.to(dtype)
    ps = [torch.nn.Parameter(p.to(dtype, copy=True)) for p in START]
    opt = make(ps)
    plan = schedule(opt) if schedule else None
    averages, count = None, 0
    kept = []
    for step in range(1, 21):
        opt.zero_grad()
        out = torch.tanh(x @ ps[0] + ps[1]) @ ps[2] + ps[3]
        torch.nn.functional.mse_loss(out, y).backward()
        if clip:
            clip(ps)
        opt.step()
        if plan:
            plan.step()
        if ema or swa:
            count += 1
            if averages is None:
                averages = [p.detach().clone() for p in ps]
            else:
                for a, p in zip(averages, ps):
                    a.lerp_(p.detach(), 1 - ema if ema else 1 / count)
        if step in KEPT:
            kept.append(flat(averages or ps))
    return kept


optim = torch.optim
norm = torch.nn.utils.clip_grad_norm_
value = torch.nn.utils.clip_grad_value_
CASES = {
    "SGD": lambda p: optim.SGD(p, 0.1),
    "SGD decay": lambda p: optim.SGD(p, 0.1, weight_decay=0.1),
    "SGD momentum": lambda p: optim.SGD(p, 0.05, momentum=0.9),
    "SGD momentum decay": lambda p: optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.1),
    "SGD momentum dampening": lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.5),
    "SGD momentum dampening decay": lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.5, weight_decay=0.1),
    "SGD Nesterov": lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "SGD Nesterov decay": lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": lambda p: optim.Adam(p, 0.05),
    "Adam options": lambda p: optim.Adam(p, 0.05, betas=(0.8, 0.95), eps=1e-3),
    "Adam no betas": lambda p: optim.Adam(p, 0.05, betas=(0.0, 0.0)),
    "Adam decay": lambda p: optim.Adam(p, 0.05, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, 0.05),
    "AdamW options": lambda p: optim.AdamW(p, 0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3),
    "AdamW no decay": lambda p: optim.AdamW(p, 0.05, weight_decay=0),
    "RMSProp": lambda p: optim.RMSprop(p, 0.01),
    "RMSProp options": lambda p: optim.RMSprop(p, 0.01, alpha=0.9, eps=1e-3),
    "RMSProp decay": lambda p: optim.RMSprop(p, 0.01, weight_decay=0.1),
    "RMSProp momentum": lambda p: optim.RMSprop(p, 0.01, momentum=0.8),
    "RMSProp centered": lambda p: optim.RMSprop(p, 0.01, alpha=0.9, centered=True),
    "RMSProp all": lambda p: optim.RMSprop(p, 0.01, alpha=0.9, centered=True, momentum=0.8, weight_decay=0.1),
    "AdaDelta": lambda p: optim.Adadelta(p, 1.0),
    "AdaDelta options": lambda p: optim.Adadelta(p, 0.5, rho=0.8, eps=1e-3, weight_decay=0.1),
}
MORE = {
    "groups": dict(make=lambda p: optim.AdamW([
        {"params": [p[0], p[2]], "lr": 0.05, "weight_decay": 0.2},
        {"params": [p[1], p[3]], "lr": 0.1, "weight_decay": 0},
    ])),
    "ClipNorm": dict(make=CASES["SGD momentum"], clip=lambda p: norm(p, 0.5)),
    "ClipValue": dict(make=CASES["SGD momentum"], clip=lambda p: value(p, 0.1)),
    "schedule": dict(make=CASES["AdamW"], schedule=lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 25, 0.005)),
    "EMA": dict(make=CASES["Adam"], ema=0.9),
    "SWA": dict(make=CASES["Adam"], swa=True),
}


def rates(make, steps=40):
    opt = optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
    plan, out = make(opt), []
    for _ in range(steps):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        plan.step()
    return out


s = optim.lr_scheduler
SCHEDULES = {
    "StepDecay": lambda o: s.StepLR(o, 7, 0.5),
    "Milestones": lambda o: s.MultiStepLR(o, [3, 10, 11, 30], 0.5),
    "Exponential": lambda o: s.ExponentialLR(o, 0.9),
    "Linear": lambda o: s.LinearLR(o, 0.25, 0.75, 20),
    "Cosine": lambda o: s.CosineAnnealingLR(o, 40, 0.1),
    "CosineRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.1),
    "CosineRestarts equal": lambda o: s.CosineAnnealingWarmRestarts(o, 7, 1, 0.1),
    "OneCycle": lambda o: s.OneCycleLR(o, 1.0, total_steps=41),
    "Warmup": lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 1 / 8, 1, 7), s.ExponentialLR(o, 0.9)], [8]),
}

LOSSES = [5, 4, 4.2, 3.9999, 3.5, 3.6, 3.7, 3.6, 3.6, 3.6, 3.4, math.nan, 3.5, 3.6, 3.7, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5,
          3.6, 3.7, 3.8, 3.9, 4.0, 4.1, 4.2, 4.3, 4.4]


def plateau(losses, **options):
    opt = optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
    plan, out = s.ReduceLROnPlateau(opt, eps=0.0, **options), []
    for loss in losses:
        plan.step(loss)
        out.append(opt.param_groups[0]["lr"])
    return out


PLATEAUS = {
    "default": plateau(LOSSES),
    "patience": plateau(LOSSES, patience=2, factor=0.5),
    "none": plateau(LOSSES, patience=0, factor=0.5),
    "cooldown": plateau(LOSSES, patience=1, factor=0.5, cooldown=3),
    "threshold": plateau(LOSSES, patience=2, factor=0.5, threshold=0.2, min_lr=0.2),
    "greater": plateau(LOSSES, patience=1, factor=0.5, mode="max"),
}


def rounded(v):
    return float("%.9g" % v)


runs = {name: dict(make=make) for name, make in CASES.items()} | MORE
out = {
    "torch": torch.__version__,
    "x": flat([X]), "y": flat([Y]), "start": flat(START), "kept": KEPT,
    "float64": {name: train(torch.float64, **run) for name, run in runs.items()},
    "float32": {name: [[rounded(v) for v in at] for at in train(torch.float32, **run)] for name, run in runs.items()},
    "schedules": {name: rates(make) for name, make in SCHEDULES.items()},
    "losses": [None if math.isnan(v) else v for v in LOSSES],
    "plateaus": PLATEAUS,
}


def dump(v, depth):
    if depth == 0 or not isinstance(v, dict):
        return json.dumps(v)
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {dump(w, depth - 1)}" for k, w in v.items()) + "\n}"


print(dump(out, 2))
