"""Times of MLX: mx.fast.scaled_dot_product_attention over f16, and mlx-lm's attention over its quantized caches."""
import statistics
import time

from shapes import GROUP_SIZE, HEADS, HEAD_DIM, KV_HEADS, Results, Time, bits_per_element, text, unavailable

# MLX has no clock of the device. A chain of calls that takes this long hides what a submission costs.
CHAIN_SECONDS, MAX_CHAIN = 20e-3, 256
WARM_UPS = 3
MIN_RUNS, MAX_RUNS, BUDGET = 5, 51, 1.0


def measure(shapes, say):
    try:
        import mlx.core as mx
    except (ImportError, OSError) as error:
        return unavailable("MLX: not available", shapes, f"mlx cannot be imported: {error}")
    times = {}
    for shape in shapes:
        say(f"MLX: {text(shape)}")
        try:
            times[shape] = time_of(mx, shape)
        except Exception as error:  # MLX raises several kinds, such as that of a machine without Metal
            times[shape] = f"failed: {error}"
    return Results(about(mx), times)


def about(mx):
    # Older versions have it in mx.metal, where it fails on a CPU.
    info = getattr(mx, "device_info", None) or getattr(getattr(mx, "metal", None), "device_info", dict)
    try:
        name = info().get("device_name", "unnamed")
    except Exception:
        name = "unnamed"
    return f"MLX {version('mlx')}, mlx-lm {version('mlx-lm')}: {mx.default_device()}, {name}"


def version(package):
    from importlib import metadata
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def time_of(mx, shape):
    queries = filled(mx, HEADS, shape.rows)
    keys, values = filled(mx, KV_HEADS, shape.keys), filled(mx, KV_HEADS, shape.keys)
    mask, scale = "causal" if shape.rows > 1 else None, HEAD_DIM**-0.5
    if shape.bits == 16:
        stored = [keys, values]
        mx.eval(queries, *stored)

        def attend(queries):
            return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask)

        how = "f16"
    else:
        from mlx_lm.models.base import quantized_scaled_dot_product_attention
        quantized = [mx.quantize(each, group_size=GROUP_SIZE, bits=shape.bits) for each in (keys, values)]
        stored = [*quantized[0], *quantized[1]]
        mx.eval(queries, *stored)

        def attend(queries):
            return quantized_scaled_dot_product_attention(
                queries, *quantized, scale=scale, mask=mask, group_size=GROUP_SIZE, bits=shape.bits)

        how = f"affine, groups of {GROUP_SIZE}"
    seconds = median_seconds(mx, attend, queries)
    return Time(1e6 * seconds, f"{how}, {bits_per_element(sum(each.nbytes for each in stored), shape)}")


def filled(mx, heads, length):
    return mx.random.uniform(-1, 1, (1, heads, length, HEAD_DIM)).astype(mx.float16)


def median_seconds(mx, attend, queries):
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

    count = 1
    for _ in range(WARM_UPS):
        seconds = run(count)
        count = max(1, min(MAX_CHAIN, int(CHAIN_SECONDS / max(seconds, 1e-9))))
        if seconds > BUDGET:
            break
    runs, spent = [], 0.0
    while len(runs) < MIN_RUNS or (len(runs) < MAX_RUNS and spent < BUDGET):
        runs.append(run(count))
        spent += runs[-1] * count
    return statistics.median(runs)
