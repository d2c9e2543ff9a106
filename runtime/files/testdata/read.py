# Prints the seconds in which a safetensors file is read, each tensor into memory of its own: read.py FILE

import sys
import time
from safetensors.torch import load_file

best = float("inf")
for _ in range(3):
    start = time.perf_counter()
    tensors = {name: t.clone() for name, t in load_file(sys.argv[1]).items()}
    best = min(best, time.perf_counter() - start)
print(best)
