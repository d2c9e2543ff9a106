# What the Go program beside this file does, with PyTorch: python mnist.py FOLDER RUN
# FOLDER has the four files of MNIST. RUN is for checkpoints, the best weights and the curve.

import gzip, os, sys
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm


def pairs(folder, part):
    def idx(name, header):
        with gzip.open(os.path.join(folder, part + name)) as f:
            return torch.from_numpy(np.frombuffer(f.read(), np.uint8, offset=header).copy())
    labels = idx("-labels-idx1-ubyte.gz", 8).long()
    return TensorDataset(idx("-images-idx3-ubyte.gz", 16).view(-1, 28, 28), labels)


def pixels(x):
    return x.float().div(255).unsqueeze(1)


def evaluate(net, loader):
    net.eval()
    loss = right = n = 0
    with torch.no_grad():
        for x, y in loader:
            scores = net(pixels(x))
            loss += nn.functional.cross_entropy(scores, y).item() * len(y)
            right += (scores.argmax(1) == y).float().sum().item()
            n += len(y)
    net.train()
    return loss / n, right / n


def train(folder, run, epochs):
    learn, check = random_split(pairs(folder, "train"), [0.9, 0.1], torch.Generator().manual_seed(1))
    batches, valid = DataLoader(learn, 64, shuffle=True), DataLoader(check, 64)
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(16 * 6 * 6, 10),
    )
    opt = torch.optim.AdamW(net.parameters(), 0.002)

    first, step, best, since, curve = 1, 0, float("inf"), 0, []
    weights, checkpoint = os.path.join(run, "best.pt"), os.path.join(run, "checkpoint.pt")
    os.makedirs(run, exist_ok=True)
    if os.path.exists(checkpoint):
        c = torch.load(checkpoint)
        net.load_state_dict(c["net"])
        opt.load_state_dict(c["opt"])
        torch.set_rng_state(c["rng"])
        first, step, best, since, curve = c["epoch"] + 1, c["step"], c["best"], c["since"], c["curve"]
    record = SummaryWriter(run, purge_step=step)

    for epoch in range(first, epochs + 1):
        if since >= 3:
            break
        bar = tqdm(batches, f"epoch {epoch}")
        for x, y in bar:
            loss = nn.functional.cross_entropy(net(pixels(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            bar.set_postfix(loss=loss.item())
            record.add_scalar("training", loss.item(), step)
            curve.append((step, loss.item(), None))
        loss, right = evaluate(net, valid)
        print(f"epoch {epoch}: loss in validation {loss:.3f}, {100 * right:.1f} % right")
        record.add_scalar("validation", loss, step)
        curve.append((step, None, loss))
        since += 1
        if loss < best:
            best, since = loss, 0
            torch.save(net.state_dict(), weights)
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state(), "epoch": epoch,
                    "step": step, "best": best, "since": since, "curve": curve}, checkpoint)

    net.load_state_dict(torch.load(weights))
    _, right = evaluate(net, DataLoader(pairs(folder, "t10k"), 64))
    print(f"test with the best weights: {100 * right:.1f} % right")
    record.close()
    for name, at in ("training", 1), ("validation", 2):
        plt.semilogy([c[0] for c in curve if c[at] is not None], [c[at] for c in curve if c[at] is not None], label=name)
    plt.legend()
    plt.savefig(os.path.join(run, "loss.svg"))


train(sys.argv[1], sys.argv[2], 8)
