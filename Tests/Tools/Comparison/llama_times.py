"""Times of llama.cpp's FLASH_ATTN_EXT, from its test-backend-ops, which has a fixed list of shapes."""
import re
import shutil
import subprocess

from shapes import HEADS, HEAD_DIM, KV_HEADS, Results, Time, unavailable

STORAGES = {16: "f16", 4: "q4_0", 8: "q8_0"}
# Bits per element: a block of 32 elements has an f16 scale.
BITS = {16: 16, 4: 4.5, 8: 8.5}
TIMEOUT = 900


def measure(shapes, say, device, program=None):
    program = program or shutil.which("test-backend-ops")
    if not program:
        about = "llama.cpp: test-backend-ops, which its tests build, is not in PATH"
        if shutil.which("llama-bench"):
            about += "; llama-bench is, but it times a whole model"
        return unavailable(about, shapes, "not installed")
    decoding = [shape for shape in shapes if shape.rows == 1]
    say("llama.cpp: decode")
    lengths = "|".join(str(keys) for keys in sorted({shape.keys for shape in decoding}))
    command = [program, "perf", "-o", "FLASH_ATTN_EXT", "-p", f"kv=({lengths}),nb=1,"]
    if device == "host":
        command += ["-b", "CPU"]  # which it skips unless it is named
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return unavailable("llama.cpp: test-backend-ops failed", shapes, f"failed: {error}")
    backend, times = parse(done.stdout, decoding)
    # Its masks are random, so rows of prefill do other work.
    missing = "not in its list" if done.returncode == 0 else f"failed with status {done.returncode}"
    return Results(f"llama.cpp {version()}: {backend}", {shape: times.get(shape, missing) for shape in shapes})


def version():
    program = shutil.which("llama-cli")
    if not program:
        return "(version unknown)"
    try:
        done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return "(version unknown)"
    found = re.search(r"^version: (.*)$", done.stdout, re.M)
    return found[1] if found else "(version unknown)"


def parse(output, shapes):
    """The name of the first backend that ran one of the shapes, and its times."""
    backend, chosen, times = "", None, {}
    for line in output.split("\n"):
        heading = re.match(r"\s*Backend \d+/\d+: (.*)", line)
        if heading:
            backend = heading[1].strip()
        case = re.match(r"\s*FLASH_ATTN_EXT\((.*)\):\s+\d+ runs -\s+([0-9.]+) us/run", line)
        if not case or chosen not in (None, backend):
            continue
        values = dict(re.findall(r"(\w+)=(\[[^\]]*\]|[^,]*)", case[1]))
        for shape in shapes:
            if shape not in times and is_case(values, shape):
                chosen = backend
                times[shape] = Time(float(case[2]), f"{STORAGES[shape.bits]}, {BITS[shape.bits]:g} bits per element")
    return chosen or "no backend ran these shapes", times


def is_case(values, shape):
    """Whether parameters of a case describe a shape. nh counts KV heads; nr23 has query heads for each, and sequences.
    """
    dims = {values.get("hsk", values.get("hs")), values.get("hsv", values.get("hs"))}
    storages = {values.get("type_K", values.get("type_KV")), values.get("type_V", values.get("type_KV"))}
    plain = all(float(values.get(name, 0)) == 0 for name in ("sinks", "max_bias", "logit_softcap"))
    return plain and dims == {str(HEAD_DIM)} and storages == {STORAGES[shape.bits]} and (
        values.get("nh"), values.get("nr23"), values.get("kv"), values.get("nb")
    ) == (str(KV_HEADS), f"[{HEADS // KV_HEADS},1]", str(shape.keys), str(shape.rows))
