#!/usr/bin/env bash
# The comparison with MLX and llama.cpp: its table, without either of them and without a measurement.
. "$(dirname "$0")/common.sh"
Tests/Tools/Comparison/test_compare.py 2>"$scratch/output" || failShowing "$scratch/output" "compare.py fails its tests"
passed "make compare: times of the same shapes, and reasons for missing ones"
