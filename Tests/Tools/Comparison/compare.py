#!/usr/bin/env python3
"""Times attention of this package, MLX and llama.cpp on this machine at the same shapes, and prints one table in
Markdown. A program that is missing or fails is a cell of the table."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
import llama_times
import mlx_times
import our_times
from shapes import HEADS, HEAD_DIM, KV_HEADS, Shape, Time, text

ON_MAC = sys.platform == "darwin"


def numbers(words):
    return [int(word) for word in words.split(",") if word]


def storages(words):
    """Bits of each: f16 is 16."""
    found = [16 if word == "f16" else int(word) for word in words.split(",")]
    if not set(found) <= set(our_times.STORAGES):
        raise argparse.ArgumentTypeError(f"{words} (expected f16, 4 and 8, with commas between)")
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    # The Host device is a CPU, and MLX's CPU build multiplies quantized matrices slowly.
    parser.add_argument("--device", default="metal" if ON_MAC else "host", help="of this package (%(default)s)")
    parser.add_argument("--keys", type=numbers, default="1024,8192,32768" if ON_MAC else "1024,4096",
                        help="lengths of caches for decode (%(default)s)")
    parser.add_argument("--storage", type=storages, default="f16,4,8", help="of caches for decode (%(default)s)")
    parser.add_argument("--prefill-rows", type=int, default=512 if ON_MAC else 64, help="0: no prefill (%(default)s)")
    parser.add_argument("--prefill-keys", type=int, default=4096 if ON_MAC else 1024, help="(%(default)s)")
    parser.add_argument("--prefill-storage", type=storages, default="f16,4,8" if ON_MAC else "f16",
                        help="(%(default)s)")
    parser.add_argument("--output", help="a file that gets the table, too")
    return parser.parse_args()


def shapes_of(options):
    shapes = [Shape(1, keys, bits) for bits in options.storage for keys in options.keys]
    if options.prefill_rows:
        shapes += [Shape(options.prefill_rows, options.prefill_keys, bits) for bits in options.prefill_storage]
    return shapes


def cells(time):
    """What was measured, and the time or the reason why there is none."""
    if isinstance(time, Time):
        return [time.storage, f"{time.microseconds:,.1f}"]
    # The table is for a public issue: it names no folder of the user.
    reason = time.replace(our_times.ROOT, ".").replace(os.path.expanduser("~"), "~")
    return ["-", " ".join(reason.split()).replace("|", "/")[:160]]


def ratio(time, other):
    both = isinstance(time, Time) and isinstance(other, Time)
    return f"{time.microseconds / other.microseconds:.2f}" if both else "-"


def table(shapes, ours, mlx, llama, device):
    lines = [
        f"Attention of one sequence with {HEADS} query heads over {KV_HEADS} KV heads of {HEAD_DIM} elements. Decode "
        "has one query row; prefill rows are causal and end at the newest key. Queries and results are f16, in "
        "llama.cpp f32. Calls are repeated over the same cache. Ours are medians of the device's clock, and over a "
        "quantized cache include the rotations of queries and results. MLX's are medians of the wall-clock time of a "
        "chain of calls, divided by their number. llama.cpp's are means of wall-clock times.",
        "",
    ]
    lines += [f"- {results.about}" for results in (ours, mlx, llama)]
    if device == "host":
        lines += [
            "",
            "**These are times of a CPU.** The Host device runs GPU kernels on it for tests, not for speed. MLX has no "
            "fused attention for a CPU. The table shows that the comparison works; its ratios predict nothing about a "
            "GPU.",
        ]
    lines += [
        "",
        "| shape | our cache | ours, µs | MLX's cache | MLX, µs | ours / MLX | llama.cpp's cache | llama.cpp, µs |",
        "| --- | --- | ---: | --- | ---: | ---: | --- | ---: |",
    ]
    for shape in shapes:
        us, them = ours.times[shape], mlx.times[shape]
        row = [text(shape), *cells(us), *cells(them), ratio(us, them), *cells(llama.times[shape])]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def say(words):
    print(words, file=sys.stderr, flush=True)


def main():
    options = arguments()
    shapes = shapes_of(options)
    say("bench decode")
    ours = our_times.measure(shapes, options.device)
    mlx = mlx_times.measure(shapes, say)
    llama = llama_times.measure(shapes, say, options.device)
    result = table(shapes, ours, mlx, llama, options.device)
    sys.stdout.buffer.write(result.encode())
    if options.output:
        with open(options.output, "wb") as file:
            file.write(result.encode())
    # Others may be missing; without our times, there is nothing to compare.
    return 0 if all(isinstance(time, Time) for time in ours.times.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
