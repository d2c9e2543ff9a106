"""Writes resize.json: planes that PyTorch has resized bilinearly, with smoothing.

Run it with PyTorch 2 on the CPU:

    python runtime/data/testdata/resize.py > runtime/data/testdata/resize.json

Pixels are numbers from 0 to 255. PyTorch computes in float32 and does not round the results to integers.
"""
import json

import torch

torch.manual_seed(1)
cases = []
for (h, w), (to_h, to_w) in [((7, 5), (3, 4)), ((3, 4), (5, 9)), ((9, 2), (4, 6)), ((1, 1), (2, 3)), ((8, 8), (1, 1)), ((5, 6), (5, 3))]:
    plane = torch.randint(0, 256, (h, w))
    resized = torch.nn.functional.interpolate(plane[None, None].float(), (to_h, to_w), mode="bilinear", antialias=True)
    cases.append({"from": [h, w], "to": [to_h, to_w], "plane": plane.flatten().tolist(),
                  "want": [round(v, 3) for v in resized.flatten().tolist()]})
print("[" + ",\n".join(json.dumps(c) for c in cases) + "]")
