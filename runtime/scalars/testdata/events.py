"""Writes events.tfevents, which the tests of package scalars compare their own encoding with.

It is written by TensorBoard's own writer (pip install tensorboard): python events.py. Nothing in it depends on the
time or the host.
"""

import os
import struct

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

EVENTS = [
    Event(wall_time=1700000000.0, file_version="brain.Event:2"),
    Event(wall_time=1700000000.0, step=7, session_log=SessionLog(status=SessionLog.START)),
    Event(wall_time=1700000000.5, summary=Summary(value=[Summary.Value(tag="loss", simple_value=0.25)])),
    Event(wall_time=1700000001.25, step=1, summary=Summary(value=[Summary.Value(tag="loss", simple_value=-1.5e-3)])),
    Event(wall_time=1700000002.0, step=300, summary=Summary(value=[Summary.Value(tag="a/ü", simple_value=float("nan"))])),
    Event(wall_time=1700000003.0, step=1 << 40, summary=Summary(value=[Summary.Value(tag="x" * 200, simple_value=float("-inf"))])),
    Event(wall_time=1700000004.0, step=-1, summary=Summary(value=[Summary.Value(tag="zero", simple_value=0.0)])),
]

if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "events.tfevents")
    with open(path, "wb") as f:
        writer = RecordWriter(f)
        for event in EVENTS:
            writer.write(event.SerializeToString(deterministic=True))
        writer.flush()
