# A peer: NumPy or PyTorch. It answers questions, a line of JSON each, as type peer in peer.go says.
import json, math, sys, time, zlib

name, threads, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
settle = lambda: None


def say(**answer):
    print(json.dumps(answer), flush=True)


def median(f, budget):
    "As in answer.go."
    f()
    settle()
    start = time.perf_counter()
    f()
    settle()
    once = max(time.perf_counter() - start, 1e-7)
    if once > budget:
        return once
    calls = max(1, int(0.002 / once))
    end, times = time.perf_counter() + budget, []
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            f()
        settle()
        times.append((time.perf_counter() - start) / calls)
    times.sort()
    return times[len(times) // 2]


def numpy_peer():
    import numpy as np

    try:
        from numpy._core._multiarray_umath import __cpu_features__ as have
    except ImportError:
        have = {}
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    isa = "AVX512" if have.get("AVX512_SKX") else "AVX2" if have.get("AVX2") else "other"
    rng = np.random.Generator(np.random.SFC64(1))
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)

    def work(q):
        kind, sizes = q["Work"], q["Sizes"]
        if kind == "matmul":
            m, n, k = sizes
            x, y, out = normal(m, k), normal(k, n), np.empty((m, n), np.float32)
            return lambda: np.matmul(x, y, out=out)
        if kind == "map":
            x, y, z = (normal(sizes[0]) for _ in range(3))
            out = None if q["Fresh"] else np.empty_like(x)
            if q["Op"] == "muladd":
                return lambda: np.add(np.multiply(x, y, out=out), z, out=out)
            f = {"add": lambda: np.add(x, y, out=out), "relu": lambda: np.maximum(x, 0, out=out),
                 "exp": lambda: np.exp(x, out=out), "tanh": lambda: np.tanh(x, out=out)}
            return f[q["Op"]]
        if kind == "randn":
            out = np.empty(sizes[0], np.float32)
            return lambda: rng.standard_normal(out=out, dtype=np.float32)
        if kind == "warmup":
            def run():
                for _ in range(10):
                    x = normal(1000, 1000)
                    np.matmul(x, x)
            return run
        if kind == "step":
            w = [normal(512, 2048) * 0.01, normal(2048, 512) * 0.01, normal(512, 1) * 0.01]
            b = [np.zeros(n, np.float32) for n in (2048, 512, 1)]
            target = np.ones((1024, 1), np.float32)

            def run():
                x = normal(1024, 512)
                h = [x]
                for i in range(3):
                    x = x @ w[i] + b[i]
                    if i < 2:
                        np.maximum(x, 0, out=x)
                    h.append(x)
                g = (h[3] - target) * np.float32(1 / 1024)
                for i in (2, 1, 0):
                    dw, db = h[i].T @ g, g.sum(0)
                    if i:
                        g = (g @ w[i].T) * (h[i] > 0)
                    w[i] -= np.float32(0.005) * dw
                    b[i] -= np.float32(0.005) * db
            return run
        if kind == "chain":
            x, y, z, out = normal(sizes[0]), normal(sizes[0]), normal(sizes[0]), np.empty(sizes[0], np.float32)

            def run():
                np.multiply(x, y, out=out)
                np.add(out, z, out=out)
                np.maximum(out, 0, out=out)
                np.subtract(out, y, out=out)
                np.multiply(out, z, out=out)
            return run
        if kind == "tiny":
            x = normal(2)
            return lambda: x + 1

    return f"{np.__version__}, {blas['name']} {blas['version']}, {isa}", work


def torch_matrix(torch, op, n, m):
    x, indices = torch.randn(n, m), 8192
    long = lambda *shape: torch.empty(*shape, dtype=torch.long)
    if op in ("softmax", "logsoftmax", "softmaxColumns", "cumsum", "cumsumColumns"):
        out = torch.empty(n, m)
        return {
            "softmax": lambda: torch.softmax(x, 1, out=out),
            "softmaxColumns": lambda: torch.softmax(x, 0, out=out),
            "logsoftmax": lambda: torch.log_softmax(x, 1, out=out),
            "cumsum": lambda: torch.cumsum(x, 1, out=out),
            "cumsumColumns": lambda: torch.cumsum(x, 0, out=out),
        }[op]
    if op == "layernorm":
        gain, bias = torch.ones(m), torch.zeros(m)
        return lambda: torch.nn.functional.layer_norm(x, (m,), gain, bias)
    if op == "sort":
        out = torch.empty(n, m), long(n, m)
        return lambda: torch.sort(x, stable=True, dim=1, descending=True, out=out)
    if op == "topk":
        out = torch.empty(n, 10), long(n, 10)
        return lambda: torch.topk(x, 10, 1, out=out)
    if op == "sumColumns":
        out = torch.empty(m)
        return lambda: torch.sum(x, 0, out=out)
    if op == "sumMiddle":
        parts = x.view(4, n // 4, m)
        out = parts.sum(1)
        return lambda: torch.sum(parts, 1, out=out)
    if op == "argmax":
        out = long(n)
        return lambda: torch.argmax(x, 1, out=out)
    if op == "argmaxColumns":
        out = long(m)
        return lambda: torch.argmax(x, 0, out=out)
    if op == "transpose":
        out = torch.empty(m, n)
        return lambda: out.copy_(x.T)
    if op == "embedding":
        at, out = torch.randint(0, n, (indices,)), torch.empty(indices, m)
        return lambda: torch.index_select(x, 0, at, out=out)
    if op == "embeddingGradient":
        at, g = torch.randint(0, n, (indices,)), torch.randn(indices, m)
        return lambda: torch.ops.aten.embedding_dense_backward(g, at, n, -1, False)
    if op == "pick":
        labels, out = torch.randint(0, m, (n, 1)), torch.empty(n, 1)
        return lambda: torch.gather(x, 1, labels, out=out)
    if op == "concat":
        y, out = torch.randn(n, m), torch.empty(n, 2 * m)
        return lambda: torch.cat((x, y), 1, out=out)
    if op == "stack":
        rows, out = [torch.randn(m) for _ in range(n)], torch.empty(n, m)
        return lambda: torch.stack(rows, out=out)
    if op == "onehot":
        labels, out = torch.randint(0, m, (n, 1)), torch.empty(n, m)
        return lambda: out.zero_().scatter_(1, labels, 1.0)


def bits(np, name, n):
    "As in models.go."
    h = np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(zlib.crc32(name.encode()))
    h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    h = (h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return h ^ h >> np.uint32(16)


def torch_train(torch, compile, q):
    "Returns a function that takes a step of a model, as models.go has it."
    import numpy as np

    nn, F = torch.nn, torch.nn.functional

    def drawn(name, variance, *shape):
        x = (bits(np, name, math.prod(shape)).astype(np.float64) / 2**31 - 1) * math.sqrt(3 * variance)
        return torch.from_numpy(x.astype(np.float32)).reshape(shape).to(device)

    def numbers(name, n, *shape):
        return torch.from_numpy((bits(np, name, math.prod(shape)) % np.uint32(n)).astype(np.int64)).reshape(shape).to(device)

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv_proj, self.out_proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = self.qkv_proj(x).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out_proj(y.transpose(1, 2).reshape(n, t, c))

    class Placed(nn.Module):
        def __init__(self, symbols, places, width):
            super().__init__()
            self.tokens, self.places = nn.Embedding(symbols, width), nn.Embedding(places, width)

        def forward(self, ids):
            return self.tokens(ids) + self.places(torch.arange(ids.shape[1]))

    def blocks(width):
        layers = []
        for _ in range(2):
            layers += [Residual(nn.LayerNorm(width), Attention(width, 4)),
                       Residual(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))]
        return layers

    class Residual(nn.Sequential):
        def forward(self, x):
            return x + super().forward(x)

    class BasicBlock(nn.Module):
        def __init__(self, n, out, stride):
            super().__init__()
            conv = lambda n, size, stride: nn.Conv2d(n, out, size, stride, size // 2, bias=False)
            self.main = nn.Sequential(conv(n, 3, stride), nn.BatchNorm2d(out), nn.ReLU(), conv(out, 3, 1), nn.BatchNorm2d(out))
            self.shortcut = nn.Sequential(conv(n, 1, stride), nn.BatchNorm2d(out)) if n != out or stride > 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.main(x) + self.shortcut(x))

    def first(m, name, p):
        "As firstValue in models.go; there a Linear has its inputs along the first axis, and q, k and v are apart."
        if ".qkv_proj." in name:
            return torch.cat([first(m, name.replace("qkv", x), part) for x, part in zip("qkv", p.chunk(3))])
        if p.dim() > 2:
            return drawn(name, 2 / math.prod(p.shape[1:]), *p.shape)
        if p.dim() == 2 and isinstance(m, nn.Linear):
            return drawn(name, 2 / p.shape[1], p.shape[1], p.shape[0]).T
        if p.dim() == 2:
            return drawn(name, 2 / p.shape[0], *p.shape)
        return torch.ones_like(p) if name.endswith("weight") else torch.zeros_like(p)

    kind, samples = q["Op"], q["Sizes"][0]
    momentum = lambda params: torch.optim.SGD(params, 0.01, 0.9, fused=True)
    conv = lambda n, out, **more: nn.Conv2d(n, out, 3, padding=1, **more)
    adamw = lambda rate: lambda params: torch.optim.AdamW(params, rate, weight_decay=0.01, fused=True)
    optimiser, classes, clip = momentum, 10, None
    if kind == "tiny":
        shape, net, classes = (samples, 2), nn.Sequential(nn.Linear(2, 2)), 2
    elif kind == "mlp":
        shape, net = (samples, 784), nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    elif kind == "cnn":
        shape, optimiser = (samples, 1, 28, 28), lambda params: torch.optim.Adam(params, 1e-3, fused=True)
        net = nn.Sequential(conv(1, 32), nn.ReLU(), nn.MaxPool2d(2), conv(32, 64), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    elif kind == "transformer":
        shape, optimiser, classes = (samples, 256), adamw(1e-3), 256
        net = nn.Sequential(nn.Embedding(256, 256), *blocks(256), nn.LayerNorm(256), nn.Linear(256, 256))
    elif kind == "program mlp":
        shape, optimiser, classes = (samples, 512), lambda params: torch.optim.SGD(params, 0.0005, fused=True), 1
        net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 1))
    elif kind == "program mnist":
        shape, optimiser = (samples, 1, 28, 28), adamw(2e-3)
        net = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 6 * 6, 10))
    elif kind == "program chargpt":
        shape, optimiser, classes, clip = (samples, 64), adamw(1e-3), 90, 1
        net = nn.Sequential(Placed(90, 64, 64), *blocks(64), nn.LayerNorm(64), nn.Linear(64, 90))
    else:
        shape, layers = (samples, 3, 32, 32), [conv(3, 16, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        for n, out in (16, 16), (16, 32), (32, 64):
            layers += [BasicBlock(n, out, out // n), BasicBlock(out, out, 1)]
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for prefix, m in net.named_modules():
        for name, p in m.named_parameters(recurse=False):
            p.data.copy_(first(m, prefix + "." + name, p))
    isText = kind in ("transformer", "program chargpt")
    x = numbers("tokens", classes, *shape) if isText else drawn("images", 1, *shape)
    labels = numbers("labels", classes, *(shape if isText else shape[:1])).reshape(-1)
    opt = optimiser(net.parameters())
    of = lambda x: F.cross_entropy(net(x).reshape(len(labels), classes), labels)
    if kind == "program mlp":
        of = lambda x: F.mse_loss(net(x), torch.ones(samples, 1)) * 0.5
    if compile:
        of = torch.compile(of)

    @torch.enable_grad()
    def step():
        opt.zero_grad()
        loss = of(x)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        opt.step()
        return loss
    return step


def memory(key):
    "What Linux says of this process without pages of files, in bytes, as in steps.go."
    try:
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        return int(status[key].split()[0]) - int(status["RssFile"].split()[0]) << 10
    except OSError:
        return 0


training = []


def train(torch, compile, q):
    "As in steps.go."
    if not training:
        torch_train(torch, False, {"Op": "tiny", "Sizes": [2]})()
        training.append(memory("VmRSS"))
        training.append(torch_train(torch, compile, q))
        try:
            open("/proc/self/clear_refs", "w").write("5")
        except OSError:
            pass
    before, step = training
    start = time.perf_counter()
    losses = [step() for _ in range(5)]
    settle()
    seconds = (time.perf_counter() - start) / len(losses)
    used = torch.cuda.max_memory_allocated() if device == "cuda" else memory("VmHWM") - before
    say(Seconds=seconds, Losses=[loss.item() for loss in losses], Bytes=used)


def torch_peer(compile=False):
    global settle
    import torch

    version = torch.backends.cpu.get_cpu_capability()
    if device == "cuda":
        torch.set_default_device(device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        settle, version = torch.cuda.synchronize, torch.cuda.get_device_name()
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)

    def work(q):
        if q["Work"] == "train":
            return train(torch, compile, q)
        kind, sizes = q["Work"], q["Sizes"]
        if kind == "matmul":
            m, n, k = sizes
            x, y, out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
            return lambda: torch.mm(x, y, out=out)
        if kind == "conv":
            n, c, side, k, stride, o, groups = sizes
            x, w = torch.randn(n, c, side, side), torch.randn(o, c // groups, k, k)
            return lambda: torch.nn.functional.conv2d(x, w, None, stride, k // 2, 1, groups)
        if kind == "pool":
            n, c, side, k, stride = sizes
            x = torch.randn(n, c, side, side)
            if q["Op"] == "max":
                return lambda: torch.nn.functional.max_pool2d(x, k, stride, k // 2)
            return lambda: torch.nn.functional.avg_pool2d(x, k, stride, k // 2, count_include_pad=False)
        if kind == "map":
            x, y, z = (torch.randn(sizes[0]) for _ in range(3))
            out = None if q["Fresh"] else torch.empty_like(x)
            f = {"add": lambda: torch.add(x, y, out=out), "muladd": lambda: torch.addcmul(z, x, y, out=out),
                 "relu": lambda: torch.clamp_min(x, 0, out=out),
                 "exp": lambda: torch.exp(x, out=out), "tanh": lambda: torch.tanh(x, out=out)}
            return f[q["Op"]]
        if kind == "randn":
            out = torch.empty(sizes[0])
            return lambda: out.normal_()
        if kind == "warmup":
            def run():
                for _ in range(10):
                    x = torch.randn(1000, 1000)
                    torch.mm(x, x)
            return run
        if kind == "step":
            net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
            opt = torch.optim.SGD(net.parameters(), 0.005)
            target = torch.ones(1024, 1)

            @torch.enable_grad()
            def run():
                opt.zero_grad()
                ((net(torch.randn(1024, 512)) - target) ** 2).mean().backward()
                opt.step()
            return run
        if kind == "chain":
            x, y, z, out = torch.randn(sizes[0]), torch.randn(sizes[0]), torch.randn(sizes[0]), torch.empty(sizes[0])

            def run():
                torch.addcmul(z, x, y, out=out)
                out.clamp_min_(0)
                torch.sub(out, y, out=out)
                torch.mul(out, z, out=out)
            return run
        if kind == "matrix":
            return torch_matrix(torch, q["Op"], *sizes)
        if kind == "tiny":
            x = torch.randn(2)
            return lambda: x + 1

    return f"{torch.__version__}, {version}", work


try:
    version, work = {"NumPy": numpy_peer, "PyTorch": torch_peer, "PyTorch, compiled": lambda: torch_peer(True)}[name]()
except Exception as e:
    say(Missing=str(e).splitlines()[0])
    sys.exit()
say(Version=version)
for line in sys.stdin:
    question = json.loads(line)
    f = work(question)
    if question["Work"] == "train":
        continue
    if f is None:
        say(Missing="not measured")
    else:
        say(Seconds=median(f, question["Budget"]))
