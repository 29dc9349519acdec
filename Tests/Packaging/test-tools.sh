#!/usr/bin/env bash
# The tests of tools in Python: shader-check refuses seeded faults and accepts valid kernels, while `make shaders` checks
# the shaders that ship; the comparison with MLX and llama.cpp makes its table without either of them.
. "$(dirname "$0")/common.sh"
for test in ShaderCheck/test_shader_check.py Comparison/test_compare.py; do
  "Tests/Tools/$test" 2>"$scratch/output" || failShowing "$scratch/output" "$test fails"
  passed "$test"
done
