"""The shapes at which attention is compared, and what a program reports about one."""
from collections import namedtuple

HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
GROUP_SIZE = 64  # of MLX's quantized caches: the default of mlx-lm

# One sequence whose newest rows attend to all of its keys. `bits` is 16 for a dense f16 cache.
Shape = namedtuple("Shape", "rows keys bits")
# Microseconds of one call, and what the program's cache stores for a key or value.
Time = namedtuple("Time", "microseconds storage")
# A program: its name, versions and device, and by shape a Time, or the reason why there is none.
Results = namedtuple("Results", "about times")


def unavailable(about, shapes, reason):
    return Results(about, {shape: reason for shape in shapes})


def text(shape):
    work = "decode" if shape.rows == 1 else f"prefill of {shape.rows:,} rows"
    return f"{work}, {shape.keys:,} keys, {'f16' if shape.bits == 16 else f'{shape.bits}-bit'}"


def bits_per_element(byte_count, shape):
    """Of a cache with this many bytes for keys and values."""
    return f"{8 * byte_count / (2 * KV_HEADS * shape.keys * HEAD_DIM):g} bits per element"
