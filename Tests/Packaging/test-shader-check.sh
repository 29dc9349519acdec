#!/usr/bin/env bash
# shader-check refuses seeded faults, and accepts valid kernels. `make shaders` checks the shaders that ship.
. "$(dirname "$0")/common.sh"
Tests/Tools/ShaderCheck/test_shader_check.py || fail "shader-check fails its tests (above)"
passed "shader-check refuses seeded faults and accepts valid kernels"
