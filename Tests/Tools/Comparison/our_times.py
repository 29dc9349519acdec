"""Times of this package, from `bench decode`."""
import json
import os
import re
import subprocess
import tempfile

from shapes import HEADS, HEAD_DIM, KV_HEADS, Results, Time, bits_per_element

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
STORAGES = {16: "f16", 4: "turbo4", 8: "turbo8"}


def version():
    with open(os.path.join(ROOT, "Sources/MLXNativeKernelsCore/include/MLXNativeKernels/mnk_version.h")) as file:
        number = re.search('^#define MNK_VERSION "(.*)"$', file.read(), re.M)[1]
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return f"MLXNativeKernels {number}" + (f", commit {commit.stdout.strip()}" if commit.returncode == 0 else "")


def measure(shapes, device, command=("make", "bench")):
    times, device_name = {}, f"no {device} device"
    for rows in sorted({shape.rows for shape in shapes}):
        wanted = [shape for shape in shapes if shape.rows == rows]
        reports, reason = run(command, wanted, device)
        for shape in wanted:
            times[shape] = reason
        for report in reports:
            device_name = report["device"]
            for one in report["measurements"]:
                for shape in wanted:
                    if (one["length"], one["storage"]) == (shape.keys, STORAGES[shape.bits]):
                        times[shape] = time_of(one, shape)
    return Results(f"{version()}: {device_name}", times)


def run(command, shapes, device):
    """Devices with measurements, and the reason if some are missing."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "times.json")
        arguments = {
            "--device": [device], "--json": [file], "--rows": [shapes[0].rows], "--kv-heads": [KV_HEADS],
            "--groups": [HEADS // KV_HEADS], "--dims": [HEAD_DIM], "--lengths": sorted({one.keys for one in shapes}),
            "--storage": [STORAGES[bits] for bits in sorted({one.bits for one in shapes}, reverse=True)],
        }
        words = [f"{option} {','.join(map(str, values))}" for option, values in arguments.items()]
        done = subprocess.run([*command, "ARGS=decode " + " ".join(words)], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        lines = [line for line in done.stdout.split("\n") if line and not line.startswith("make")]
        reason = f"failed: {lines[-1]}" if done.returncode != 0 and lines else "not measured"
        try:
            with open(file) as results:
                return json.load(results), reason
        except (OSError, ValueError):
            return [], reason


def time_of(measurement, shape):
    queries_and_results = 2 * 2 * shape.rows * HEADS * HEAD_DIM  # in f16
    stored = bits_per_element(measurement["bytes"] - queries_and_results, shape)
    return Time(1e6 * measurement["seconds"], f"{measurement['storage']}, {stored}")
