#!/usr/bin/env python3
"""Tests of compare.py without a build, MLX or llama.cpp: small programs and a module replace them."""
import itertools
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import compare
from compare import Results, Shape, Time

# Writes the JSON file of its arguments, as `bench decode` does, but without the last length.
BENCH = r"""
import json, re, sys
assert sys.argv[1].startswith("ARGS=decode ")
options = dict(re.findall(r"--(\S+) (\S+)", sys.argv[1]))
print(sys.argv[1])
if options["device"] == "broken":
    print("make: entering", "this device is broken", "make: leaving", sep="\n")
    sys.exit(2)
rows, lengths = int(options["rows"]), options["lengths"].split(",")
found = [
    {"length": int(length), "storage": storage, "seconds": int(length) * 1e-6,
     "bytes": 2 * 8 * int(length) * {"f16": 256, "turbo4": 66}[storage] + 2 * rows * 32 * 128 * 2}
    for length in lengths[:max(1, len(lengths) - 1)] for storage in options["storage"].split(",")
]
json.dump([{"device": "Small GPU", "measurements": found}], open(options["json"], "w"))
"""

CASE = ("  FLASH_ATTN_EXT(hsk={0},hsv=128,nh={1},nr23=[4,{2}],kv={3},nb=1,mask=1,sinks=0,max_bias=0.000000,"
        "logit_softcap={4},prec=f32,type_K={5},type_V=f16,permute=[0,1,2,3]):   {6}")
RUNS = "  8184 runs -   {} us/run -  67.11 MFLOP/run - \033[1;34m  1.10 TFLOPS\033[0m"


def case(microseconds, head_dim=128, kv_heads=8, sequences=1, keys=8192, softcap="0.0", storage="f16"):
    runs = RUNS.format(microseconds) if microseconds else "not supported"
    return CASE.format(head_dim, kv_heads, sequences, keys, softcap, storage, runs)


# All but one line of the first backend differ from the shape, each in one parameter.
LLAMA = "\n".join([
    "Testing 2 devices", "", "Backend 1/2: MTL0", "  Device description: Small GPU", case(1, head_dim=64),
    case(2, kv_heads=4), case(3, sequences=2), case(4, softcap="10.0"), case(5, storage="q4_0"), case(None, keys=1024),
    case(61.25), "  Backend MTL0: OK", "Backend 2/2: CPU", case(900, keys=1024),
])


class FakeArray:
    """Counts the calls that led to it."""
    nbytes = 512

    def __init__(self, of=None):
        self.calls = of.calls if of else 0

    def astype(self, _):
        return self


def fake_mlx():
    core = types.ModuleType("mlx.core")
    core.float16, core.array, core.evaluated = "f16", FakeArray, []
    core.eval = lambda *arrays: core.evaluated.append(arrays[0].calls)
    core.random = types.SimpleNamespace(uniform=lambda *_: FakeArray())
    core.default_device = lambda: "Small GPU"

    def attend(queries, keys, values, scale, mask):
        core.mask = mask
        results = FakeArray(queries)
        results.calls += 1
        return results

    core.fast = types.SimpleNamespace(scaled_dot_product_attention=attend)
    package = types.ModuleType("mlx")
    package.core = core
    return {"mlx": package, "mlx.core": core}


class CompareTests(unittest.TestCase):
    def test_our_times_are_those_of_bench_decode(self):
        shapes = compare.shapes_of("1x1024x16,1x1024x4,1x2048x16,64x1024x16")
        ours = compare.our_times(shapes, "metal", [sys.executable, "-c", BENCH])
        self.assertRegex(ours.about, r"^MLXNativeKernels \d+\.\d+\.\d+.*: Small GPU$")
        dense = Time(1024, "f16, 16 bits per element")
        self.assertEqual(list(ours.times.values()), [
            dense, Time(1024, "turbo4, 4.125 bits per element"), "not measured", dense])
        broken = compare.our_times(shapes[:1], "broken", [sys.executable, "-c", BENCH])
        self.assertEqual(broken.times[shapes[0]], "failed: this device is broken")

    def test_llama_cpp_has_times_of_the_same_shapes_only(self):
        shapes = compare.shapes_of("1x8192x16,1x1024x4,512x8192x16")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "test-backend-ops")
            with open(program, "w") as file:
                file.write(f"#!{sys.executable}\nimport sys\nassert sys.argv[1:4] == ['perf', '-o', 'FLASH_ATTN_EXT']\n"
                           "assert sys.argv[4:6] == ['-p', 'kv=(1024|8192),nb=1,']\n"
                           f"if sys.argv[6:] != ['-b', 'CPU']: print({LLAMA!r})\n")
            os.chmod(program, 0o755)
            llama = compare.llama_times(shapes, "metal", program)
            on_cpu = compare.llama_times(shapes, "host", program)
        self.assertEqual(list(llama.times.values()), [
            Time(61.25, "f16, 16 bits per element"), "not in its list", "not in its list"])
        self.assertIn("MTL0", llama.about)
        self.assertIn("no backend", on_cpu.about)

    def test_missing_programs_are_reasons(self):
        shape = Shape(1, 1024, 16)
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            self.assertEqual(compare.llama_times([shape], "metal").times[shape], "not installed")
        with mock.patch.dict(sys.modules, {"mlx": None}):
            self.assertIn("mlx cannot be imported", compare.mlx_times([shape]).times[shape])

    def test_mlx_is_timed_in_chains_with_new_queries(self):
        modules = fake_mlx()
        core = modules["mlx.core"]
        clock = itertools.count(0, 1e-6).__next__  # each interval is a microsecond
        with mock.patch.dict(sys.modules, modules), mock.patch.object(compare.time, "perf_counter", clock):
            mlx = compare.mlx_times([Shape(1, 1024, 16)])
            self.assertIsNone(core.mask)
            compare.mlx_times([Shape(64, 1024, 16)])
            self.assertEqual(core.mask, "causal")
        self.assertIn("Small GPU", mlx.about)
        (time,) = mlx.times.values()
        self.assertAlmostEqual(time.microseconds, 1 / 256)
        self.assertTrue(time.storage.startswith("f16, "))
        self.assertEqual(set(core.evaluated), {0, 1, 256})

    def test_table_has_times_and_reasons(self):
        shapes = compare.shapes_of("1x1024x16,512x4096x8")
        ours = Results("ours", {shapes[0]: Time(50, "f16"), shapes[1]: Time(2000.04, "turbo8")})
        mlx = Results("MLX 9", {shapes[0]: Time(100, "f16"), shapes[1]: f"failed: a|b\nin {compare.ROOT}/x"})
        llama = compare.unavailable("llama.cpp", shapes, "not installed")
        table = compare.table(shapes, ours, mlx, llama, "metal")
        self.assertIn("| decode, 1,024 keys, f16 | f16 | 50.0 | f16 | 100.0 | 0.50 | - | not installed |\n", table)
        self.assertIn("| prefill of 512 rows, 4,096 keys, 8-bit | turbo8 | 2,000.0 | - | failed: a/b in ./x | - | - | "
                      "not installed |\n", table)
        self.assertIn("\n- MLX 9\n", table)
        self.assertNotIn("CPU", table)
        self.assertIn("**These are times of a CPU.**", compare.table(shapes, ours, mlx, llama, "host"))


if __name__ == "__main__":
    unittest.main()
