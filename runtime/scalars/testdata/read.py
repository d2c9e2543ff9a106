"""Prints what TensorBoard's reader finds in the folder that it is given, as a line of JSON for each number.

The tests of package scalars run it where Python has the package tensorboard.
"""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
accumulator.Reload()
for tag in sorted(accumulator.Tags()["scalars"]):
    for event in accumulator.Scalars(tag):
        print(json.dumps({"name": tag, "step": event.step, "value": str(event.value), "time": event.wall_time}))
