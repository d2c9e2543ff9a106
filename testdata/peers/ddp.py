"""Trains the perceptron of testdata/programs/parallel by PyTorch, over ranks with gloo, and prints the time of a step.

    torchrun --nproc-per-node 2 testdata/peers/ddp.py -batch 1024
    mpiexec -n 2 parallel -ranks -batch 1024

Each rank has one thread, and its part of the batch. The time leaves out the first step.
"""

import argparse
import time

import torch
from torch.nn.parallel import DistributedDataParallel

options = argparse.ArgumentParser()
options.add_argument("-batch", type=int, default=4096)
options.add_argument("-steps", type=int, default=4)
options.add_argument("-small", action="store_true")
options = options.parse_args()
inputs, width, layers = (64, 128, 4) if options.small else (512, 1024, 6)

torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
ranks = torch.distributed.get_world_size()
torch.manual_seed(1)
parts = []
for i in range(layers):
    parts += [torch.nn.Linear(width if i else inputs, width), torch.nn.ReLU()]
model = DistributedDataParallel(torch.nn.Sequential(*parts, torch.nn.Linear(width, 1)))
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1 + options.steps):
    if step == 1:
        torch.distributed.barrier()
        begin = time.perf_counter()
    x, y = torch.randn(options.batch // ranks, inputs), torch.ones(options.batch // ranks, 1)
    sgd.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    sgd.step()
torch.distributed.barrier()
took = (time.perf_counter() - begin) / options.steps
if torch.distributed.get_rank() == 0:
    print(f"{ranks} ranks: {took * 1e3:.3f} ms a step")
torch.distributed.destroy_process_group()
