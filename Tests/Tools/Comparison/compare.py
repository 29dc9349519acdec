#!/usr/bin/env python3
"""Times attention of this package, MLX and llama.cpp on this machine at the same shapes, and prints one table in
Markdown. A program that is missing or fails is a cell of the table."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from importlib import metadata

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
ON_MAC = sys.platform == "darwin"
HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
GROUP_SIZE = 64  # of MLX's quantized caches: the default of mlx-lm
# By bits, where 16 is a dense f16 cache: names of our storages and of llama.cpp's, and bits per element of the latter,
# in which a block of 32 elements has an f16 scale.
OURS = {16: "f16", 4: "turbo4", 8: "turbo8"}
LLAMA = {16: ("f16", 16), 4: ("q4_0", 4.5), 8: ("q8_0", 8.5)}
# Rows, keys and bits. The Host device is a CPU, and MLX's CPU build multiplies quantized matrices slowly.
SHAPES = (
    "1x1024x16,1x8192x16,1x32768x16,1x1024x4,1x8192x4,1x32768x4,1x1024x8,1x8192x8,1x32768x8,"
    "512x4096x16,512x4096x4,512x4096x8"
) if ON_MAC else "1x1024x16,1x4096x16,1x1024x4,1x4096x4,1x1024x8,1x4096x8,64x1024x16"
ABOUT = f"""\
Attention of one sequence with {HEADS} query heads over {KV_HEADS} KV heads of {HEAD_DIM} elements. Decode has one \
query row; prefill rows are causal and end at the newest key. Queries and results are f16, in llama.cpp f32. Calls are \
repeated over the same cache. Ours are medians of the device's clock, and over a quantized cache include the rotations \
of queries and results. MLX's are medians of the wall-clock time of a chain of calls, divided by their number. \
llama.cpp's are means of wall-clock times.
"""
OF_A_CPU = """
**These are times of a CPU.** The Host device runs GPU kernels on it for tests, not for speed. MLX has no fused \
attention for a CPU. The table shows that the comparison works; its ratios predict nothing about a GPU.
"""

# One sequence whose newest rows attend to all of its keys.
Shape = namedtuple("Shape", "rows keys bits")
# Microseconds of one call, and what the program's cache stores for a key or value.
Time = namedtuple("Time", "microseconds storage")
# A program: its name, versions and device, and by shape a Time, or the reason why there is none.
Results = namedtuple("Results", "about times")


def unavailable(about, shapes, reason):
    return Results(about, dict.fromkeys(shapes, reason))


def shapes_of(words):
    shapes = [Shape(*map(int, word.split("x"))) for word in words.split(",")]
    if not {shape.bits for shape in shapes} <= OURS.keys():
        raise argparse.ArgumentTypeError(f"{words} (expected 16, 4 and 8 bits)")
    return shapes


def stored(name, byte_count, shape):
    """What a cache stores that has this many bytes for keys and values."""
    return f"{name}, {8 * byte_count / (2 * KV_HEADS * shape.keys * HEAD_DIM):g} bits per element"


def output_of(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, **{"stderr": subprocess.STDOUT, **options})


def our_times(shapes, device, command=("make", "bench")):
    """Those of `bench decode`, which takes one number of rows at a time."""
    with open(f"{ROOT}/Sources/MLXNativeKernelsCore/include/MLXNativeKernels/mnk_version.h") as file:
        about = "MLXNativeKernels " + re.search('MNK_VERSION "(.*)"', file.read())[1]
    commit = output_of("git", "rev-parse", "--short=12", "HEAD", cwd=ROOT)
    about += f", commit {commit.stdout.strip()}" if commit.returncode == 0 else ""
    times, name = {}, f"no {device} device"
    for rows in sorted({shape.rows for shape in shapes}):
        wanted = [shape for shape in shapes if shape.rows == rows]
        reports, reason = bench_decode(command, wanted, device)
        times.update(dict.fromkeys(wanted, reason))
        for report in reports:
            name = report["device"]
            for one in report["measurements"]:
                for shape in wanted:
                    if (one["length"], one["storage"]) == (shape.keys, OURS[shape.bits]):
                        cache = one["bytes"] - 2 * 2 * rows * HEADS * HEAD_DIM  # without queries and results
                        times[shape] = Time(1e6 * one["seconds"], stored(one["storage"], cache, shape))
    return Results(f"{about}: {name}", times)


def bench_decode(command, shapes, device):
    """Devices with measurements, and the reason if some are missing."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "times.json")
        lengths = ",".join(map(str, sorted({one.keys for one in shapes})))
        storages = ",".join(OURS[bits] for bits in sorted({one.bits for one in shapes}, reverse=True))
        done = output_of(
            *command, f"ARGS=decode --device {device} --json {file} --rows {shapes[0].rows} --kv-heads {KV_HEADS} "
            f"--groups {HEADS // KV_HEADS} --dims {HEAD_DIM} --lengths {lengths} --storage {storages}", cwd=ROOT)
        lines = [line for line in done.stdout.split("\n") if line and not line.startswith("make")]
        reason = f"failed: {lines[-1]}" if done.returncode != 0 and lines else "not measured"
        try:
            with open(file) as results:
                return json.load(results), reason
        except (OSError, ValueError):
            return [], reason


def mlx_times(shapes):
    try:
        import mlx.core as mx
    except (ImportError, OSError) as error:
        return unavailable("MLX: not available", shapes, f"mlx cannot be imported: {error}")
    versions, times = [], {}
    for package in ("mlx", "mlx-lm"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    for shape in shapes:
        try:
            times[shape] = mlx_time(mx, shape)
        except Exception as error:  # MLX raises several kinds, such as that of a machine without Metal
            times[shape] = f"failed: {error}"
    return Results(f"MLX: {', '.join(versions)}, {mx.default_device()}", times)


def mlx_time(mx, shape):
    def filled(heads, length):
        return mx.random.uniform(-1, 1, (1, heads, length, HEAD_DIM)).astype(mx.float16)

    queries, cache = filled(HEADS, shape.rows), [filled(KV_HEADS, shape.keys) for _ in range(2)]
    settings = {"scale": HEAD_DIM**-0.5, "mask": "causal" if shape.rows > 1 else None}
    name, attend = "f16", mx.fast.scaled_dot_product_attention
    arrays = cache
    if shape.bits != 16:
        from mlx_lm.models.base import quantized_scaled_dot_product_attention as attend
        format = {"group_size": GROUP_SIZE, "bits": shape.bits}
        cache = [mx.quantize(each, **format) for each in cache]
        name, arrays, settings = f"affine, groups of {GROUP_SIZE}", [*cache[0], *cache[1]], settings | format
    mx.eval(queries, *arrays)
    seconds = median_seconds(mx, lambda results: attend(results, *cache, **settings), queries)
    return Time(1e6 * seconds, stored(name, sum(each.nbytes for each in arrays), shape))


def median_seconds(mx, attend, queries, budget=1.0, longest=256):
    """MLX has no clock of the device. A chain of calls that takes 20 ms hides what a submission costs."""
    def run(count):
        # mlx-lm scales its argument in place, so each run needs another array.
        results = mx.array(queries)
        mx.eval(results)
        begin = time.perf_counter()
        # Each call attends with the results of the one before. Independent calls could overlap.
        for _ in range(count):
            results = attend(results)
        mx.eval(results)
        return (time.perf_counter() - begin) / count

    count, runs = 1, []
    for _ in range(3):
        count = max(1, min(longest, int(20e-3 / max(run(count), 1e-9))))
    while len(runs) < 5 or (len(runs) < 51 and sum(runs) * count < budget):
        runs.append(run(count))
    return statistics.median(runs)


def llama_times(shapes, device, program=None):
    """Those of test-backend-ops, which has a fixed list of shapes. Its masks are random, so rows of prefill do other
    work."""
    program = program or shutil.which("test-backend-ops")
    if not program:
        about = "llama.cpp: test-backend-ops, which its tests build, is not in PATH"
        return unavailable(about, shapes, "not installed")
    decoding = [shape for shape in shapes if shape.rows == 1]
    lengths = "|".join(str(keys) for keys in sorted({shape.keys for shape in decoding}))
    # It skips the CPU unless it is named.
    chosen = ["-b", "CPU"] if device == "host" else []
    command = [program, "perf", "-o", "FLASH_ATTN_EXT", "-p", f"kv=({lengths}),nb=1,", *chosen]
    try:
        done = output_of(*command, stderr=subprocess.DEVNULL, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return unavailable("llama.cpp: test-backend-ops failed", shapes, f"failed: {error}")
    backend, times = parsed(done.stdout, decoding)
    missing = "not in its list" if done.returncode == 0 else f"failed with status {done.returncode}"
    return Results(f"llama.cpp: {backend}", {shape: times.get(shape, missing) for shape in shapes})


def parsed(output, shapes):
    """The name of the first backend that ran one of the shapes, and its times."""
    backend, chosen, times = "", None, {}
    for line in output.split("\n"):
        heading = re.match(r"\s*Backend \d+/\d+: (.*)", line)
        backend = heading[1].strip() if heading else backend
        case = re.match(r"\s*FLASH_ATTN_EXT\((.*)\):\s+\d+ runs -\s+([0-9.]+) us/run", line)
        if not case or chosen not in (None, backend):
            continue
        values = dict(re.findall(r"(\w+)=(\[[^\]]*\]|[^,]*)", case[1]))
        for shape in shapes:
            name, bits = LLAMA[shape.bits]
            # nh counts KV heads; nr23 has query heads for each, and sequences.
            wanted = {
                "hsk": str(HEAD_DIM), "hsv": str(HEAD_DIM), "type_K": name, "type_V": name, "nh": str(KV_HEADS),
                "nr23": f"[{HEADS // KV_HEADS},1]", "kv": str(shape.keys), "nb": str(shape.rows),
            }
            is_plain = all(float(values.get(key, 0)) == 0 for key in ("sinks", "max_bias", "logit_softcap"))
            if shape not in times and is_plain and wanted.items() <= values.items():
                chosen, times[shape] = backend, Time(float(case[2]), f"{name}, {bits:g} bits per element")
    return chosen or "no backend ran these shapes", times


def cells(result):
    """What was measured, and the time or the reason why there is none."""
    if isinstance(result, Time):
        return [result.storage, f"{result.microseconds:,.1f}"]
    # The table is for a public issue: it names no folder of the user.
    reason = result.replace(ROOT, ".").replace(os.path.expanduser("~"), "~")
    return ["-", " ".join(reason.split()).replace("|", "/")[:160]]


def table(shapes, ours, mlx, llama, device):
    lines = [ABOUT, *(f"- {results.about}" for results in (ours, mlx, llama)), *[OF_A_CPU] * (device == "host"), """
| shape | our cache | ours, µs | MLX's cache | MLX, µs | ours / MLX | llama.cpp's cache | llama.cpp, µs |
| --- | --- | ---: | --- | ---: | ---: | --- | ---: |"""]
    for shape in shapes:
        us, them = ours.times[shape], mlx.times[shape]
        both = isinstance(us, Time) and isinstance(them, Time)
        ratio = f"{us.microseconds / them.microseconds:.2f}" if both else "-"
        work = "decode" if shape.rows == 1 else f"prefill of {shape.rows:,} rows"
        name = f"{work}, {shape.keys:,} keys, {'f16' if shape.bits == 16 else f'{shape.bits}-bit'}"
        lines.append(f"| {' | '.join([name, *cells(us), *cells(them), ratio, *cells(llama.times[shape])])} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="metal" if ON_MAC else "host", help="of this package (%(default)s)")
    parser.add_argument("--shapes", type=shapes_of, default=SHAPES, help="a list of ROWSxKEYSxBITS (%(default)s)")
    parser.add_argument("--output", help="a file that gets the table, too")
    options = parser.parse_args()
    print("bench decode, then MLX, then llama.cpp", file=sys.stderr, flush=True)
    ours = our_times(options.shapes, options.device)
    others = mlx_times(options.shapes), llama_times(options.shapes, options.device)
    result = table(options.shapes, ours, *others, options.device).encode()
    sys.stdout.buffer.write(result)
    if options.output:
        with open(options.output, "wb") as file:
            file.write(result)
    # Others may be missing; without our times, there is nothing to compare.
    return 0 if all(isinstance(one, Time) for one in ours.times.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
