"""Prints what PyTorch converts between float32 and its types of 16 bits, as checksums that storage_test.go compares.

python3 half.py > half.txt   # torch 2.15, CPU

Every line is a conversion, the number of results and the SHA-256 of their bits, little endian. A NaN counts as one
positive quiet NaN without payload: PyTorch itself gives different ones in vectors and elsewhere.
"""

import hashlib
import torch

patterns = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)  # the conversion wraps around


def line(name, x):
    size = x.element_size()
    bits = {2: torch.int16, 4: torch.int32}[size]
    nan = {torch.float16: 0x7E00, torch.bfloat16: 0x7FC0, torch.float32: 0x7FC00000}[x.dtype]
    words = torch.where(torch.isnan(x), torch.tensor(nan, dtype=bits), x.view(bits))
    print(name, x.numel(), hashlib.sha256(words.numpy().tobytes()).hexdigest())


for dtype in torch.float16, torch.bfloat16:
    name = str(dtype).removeprefix("torch.")
    values = patterns.view(dtype).to(torch.float32)
    line(f"{name} float32", values)
    # Each value and what lies halfway between it and the next, with their neighbours among float32.
    following = torch.roll(values.view(-1, 2**15), -1, 1).reshape(-1)
    halfway = ((values.double() + following.double()) / 2).float()
    for base in values, halfway:
        for step in -1, 0, 1:
            bits = base.view(torch.int32).to(torch.int64) + step
            near = bits.to(torch.int32).view(torch.float32)
            line(f"float32 {name} {'value' if base is values else 'halfway'} {step:+d}", near.to(dtype))
