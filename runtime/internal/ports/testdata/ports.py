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
from torch.nn import functional as F

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


def write(name, model, outputs, loss=None, after=None):
    """One forward and backward pass, and the loss after a step of SGD, or what after returns."""
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
    if after:
        d["after"] = after()
    else:
        torch.optim.SGD([p for _, p in params], lr=0.01).step()
        d["after"] = [loss(outputs()).item()]
    path = pathlib.Path(__file__).parent / (name + ".json")
    rows = ",\n".join("  " + json.dumps(p) for p in d.pop("params"))
    path.write_text(json.dumps(d)[:-1] + ', "params": [\n' + rows + "\n]}\n")


def vit_3d():
    m = original(vit / "vit_pytorch/vit_3d.py").ViT(
        image_size=8, image_patch_size=4, frames=4, frame_patch_size=2, num_classes=5, dim=12, depth=2, heads=2,
        dim_head=4, mlp_dim=20, pool="mean")
    x = fill(7, 2, 3, 4, 8, 8)
    write("vit_3d", m, lambda: m(x))


def simple_uvit():
    u = original(vit / "vit_pytorch/simple_uvit.py")
    m = u.SimpleUViT(
        image_size=(8, 12), patch_size=4, num_classes=5, dim=12, depth=3, heads=2, dim_head=4, mlp_dim=20,
        num_register_tokens=3)
    m.pos_embedding = u.posemb_sincos_2d(2, 3, 12, dtype=torch.float64)  # not rounded to float32
    x = fill(7, 2, 3, 8, 12)
    write("simple_uvit", m, lambda: m(x))


def vit_detpool():
    m = original(vit / "vit_pytorch/vit_detpool.py").ViTDetPool(
        image_size=12, patch_size=4, num_classes=5, dim=12, depth=2, heads=2, dim_head=4, mlp_dim=20)
    x = fill(7, 2, 3, 12, 12)
    objects = fill(8, 2, 12, 12) > 0.45, fill(9, 2, 9) > 0, None

    class Find(nn.Module):
        def forward(self, x):
            return x[0, :2] > 0.45

    def outputs():
        m.mask_generator = None
        given = [m(x, object_mask=o) for o in objects]
        m.mask_generator = Find()
        return torch.cat([*given, m(x)])

    write("vit_detpool", m, outputs)


def vit_1d():
    m = original(vit / "vit_pytorch/vit_1d.py").ViT(
        seq_len=24, patch_size=4, num_classes=5, dim=12, depth=2, heads=2, dim_head=4, mlp_dim=20)
    x = fill(7, 2, 3, 24)
    write("vit_1d", m, lambda: m(x))


def mnist():
    main = original(examples / "mnist/main.py")
    m = main.Net()
    x, labels = fill(7, 3, 1, 28, 28), torch.tensor([4, 0, 9])

    def after():
        opt = torch.optim.Adadelta(m.parameters(), lr=1.0)
        schedule = main.StepLR(opt, step_size=1, gamma=0.7)
        opt.step()
        schedule.step()
        main.train(types.SimpleNamespace(log_interval=10, dry_run=True), m, "cpu", Loader([(x, labels)]), opt, 1)
        m.eval()
        y = torch.cat([m(x), m(x)])
        twice = torch.cat([labels, labels])
        return [F.nll_loss(y, twice, reduction="sum").item(), float((y.argmax(1) == twice).sum())]

    write("mnist", m, lambda: m(x), loss=lambda y: F.nll_loss(y, labels), after=after)


class Loader(list):
    dataset = range(3)


def look_vit():
    m = original(vit / "vit_pytorch/look_vit.py").LookViT(
        dim=12, image_size=12, num_classes=5, depth=2, patch_size=4, heads=2, mlp_factor=2, dim_head=4,
        highres_patch_size=2, highres_mlp_factor=3, cross_attn_heads=3, cross_attn_dim_head=5,
        patch_conv_kernel_size=3)
    x = fill(7, 2, 3, 12, 12)
    write("look_vit", m, lambda: m(x))


def na_vit_nested_tensor_3d():
    na = original(vit / "vit_pytorch/na_vit_nested_tensor_3d.py")
    na.nested_tensor = torch.nested.as_nested_tensor  # nested_tensor copies: nothing before it would get a gradient
    m = na.NaViT(
        image_size=12, max_frames=4, patch_size=4, frame_patch_size=2, num_classes=5, dim=12, depth=2, heads=2,
        mlp_dim=20, dim_head=4, num_registers=3, token_dropout_prob=0.0)
    volumes = [fill(7, 3, 4, 8, 8), fill(8, 3, 2, 12, 4), fill(9, 3, 4, 4, 12)]
    write("na_vit_nested_tensor_3d", m, lambda: m(volumes))


def vit_nd_pope():
    m = original(vit / "vit_pytorch/vit_nd_pope.py").ViTND(
        ndim=4, input_shape=(4, 2, 8, 6), patch_size=(2, 2, 4, 3), num_classes=5, dim=12, depth=2, heads=2,
        dim_head=4, mlp_dim=20, pope_p_zero_freqs=0.3)
    x = fill(7, 2, 3, 4, 2, 8, 6)
    write("vit_nd_pope", m, lambda: torch.cat([m(x), m(x, return_embed=True).reshape(2, -1)], 1))


def cct():
    m = original(vit / "vit_pytorch/cct.py").CCT(
        img_size=(10, 12), embedding_dim=12, n_conv_layers=2, kernel_size=3, stride=1, padding=1, num_layers=2,
        num_heads=3, mlp_ratio=20 / 12, num_classes=5, stochastic_depth_rate=0.0)
    x = fill(7, 2, 3, 10, 12)
    write("cct", m, lambda: m(x))


def cvt():
    m = original(vit / "vit_pytorch/cvt.py").CvT(
        num_classes=5,
        s1_emb_dim=6, s1_emb_kernel=5, s1_emb_stride=2, s1_heads=1, s1_mlp_mult=2,
        s2_emb_dim=8, s2_heads=2, s2_depth=2, s2_mlp_mult=3,
        s3_emb_dim=10, s3_emb_stride=1, s3_proj_kernel=1, s3_kv_proj_stride=1, s3_heads=1, s3_depth=1, s3_mlp_mult=1)
    x = fill(7, 2, 3, 14, 12)
    write("cvt", m, lambda: m(x))


def cct_learnable():
    m = original(vit / "vit_pytorch/cct.py").CCT(
        img_size=(17, 20), embedding_dim=12, kernel_size=5, stride=2, padding=2, pooling_padding=0, num_layers=2,
        num_heads=3, mlp_ratio=2, num_classes=5, stochastic_depth_rate=0.0, positional_embedding="learnable")
    x = fill(7, 2, 3, 17, 20)
    write("cct_learnable", m, lambda: m(x))


def simmim():
    encoder = original(vit / "vit_pytorch/vit.py").ViT(
        image_size=(8, 12), patch_size=4, num_classes=5, dim=12, depth=2, heads=2, dim_head=4, mlp_dim=20)
    encoder.pos_embedding = nn.Parameter(encoder.pos_embedding[None])  # which simmim takes for granted
    m = original(vit / "vit_pytorch/simmim.py").SimMIM(encoder=encoder, masking_ratio=0.5)
    x, noise = fill(7, 2, 3, 8, 12), fill(8, 2, 6)

    def outputs():
        rand, torch.rand = torch.rand, lambda *shape, device: noise
        try:
            return m(x)
        finally:
            torch.rand = rand

    write("simmim", m, outputs, loss=lambda y: y)


def simple_flash_attn_vit():
    m = original(vit / "vit_pytorch/simple_flash_attn_vit.py").SimpleViT(
        image_size=(8, 12), patch_size=4, num_classes=5, dim=12, depth=2, heads=2, dim_head=4, mlp_dim=20)
    x = fill(7, 2, 3, 8, 12)
    write("simple_flash_attn_vit", m, lambda: m(x))


def vit_detpool_tokens():
    m = original(vit / "vit_pytorch/vit_detpool.py").ViTDetPool(
        image_size=12, patch_size=4, num_classes=0, dim=12, depth=2, heads=2, dim_head=4, mlp_dim=20,
        use_cls_token=False)
    write("vit_detpool_tokens", m, lambda: m(fill(7, 2, 3, 12, 12), object_mask=fill(9, 2, 9) > 0))


ports = [
    vit_3d, simple_uvit, vit_detpool, vit_detpool_tokens, vit_1d, mnist, look_vit, na_vit_nested_tensor_3d,
    vit_nd_pope, cct, cct_learnable, cvt, simmim, simple_flash_attn_vit]
for port in ports:
    if port.__name__ in sys.argv[3:] or len(sys.argv) == 3:
        port()
