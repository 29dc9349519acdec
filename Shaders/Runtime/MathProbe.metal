// Shows how a library was compiled. Fast math assumes that there is no NaN and no infinity, and may multiply with a
// reciprocal instead of dividing. Numbers come from memory, so that no compiler knows the results. Runs as one thread.
#include "../Common/MetalCompat.h"
#include "ProbeTypes.h"

kernel void mathProbe(
    device const float* numbers [[buffer(kMathProbeNumbers)]], device float* found [[buffer(kMathProbeFound)]]) {
  const float nan = numbers[kMathProbeNaN], infinity = numbers[kMathProbeInfinity];
  found[kMathProbeNaN] = nan <= infinity || nan > infinity ? 1.0f : 0.0f;
  found[kMathProbeInfinity] = infinity - infinity;
  for (uint i = 0; i < uint(kMathProbePairCount); ++i) {
    device const float* pair = numbers + kMathProbePairs + 2u * i;
    found[uint(kMathProbePairs) + i] = pair[0] / pair[1];
  }
}
export_kernel(mathProbe)
