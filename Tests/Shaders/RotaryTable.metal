// An alternative rotation: one dispatch writes the cosines and sines of all positions to a table, and dispatches that
// rotate vectors read it. Benchmarks compare it with MultiRoPE, which recomputes them, in results and time.
// Vectors are token-major f16, split in halves; a token's row of the table holds its cosines, then its sines.
#include "../../Shaders/Common/MetalCompat.h"
#include "../../Shaders/Common/Rotary.h"

struct RotaryTableParams {
  uint pairs;
  uint heads;
  uint headsPerGroup;
  int firstPosition;
};

// Grid: (pair, token).
kernel void rotaryTable(
    constant RotaryTableParams& p [[buffer(0)]], constant uint2* frequencies [[buffer(1)]],
    device float* table [[buffer(2)]], uint2 at [[thread_position_in_grid]]) {
  const Rotation rotation = rotationAt(long(p.firstPosition) + long(at.y), frequencies[at.x]);
  const ulong row = ulong(at.y) * 2u * p.pairs;
  table[row + at.x] = rotation.cosine;
  table[row + p.pairs + at.x] = rotation.sine;
}
export_kernel(rotaryTable)

// Grid: (four pairs, group of heads, token).
kernel void rotateByTable(
    constant RotaryTableParams& p [[buffer(0)]], device const float4* table [[buffer(1)]],
    device const half4* from [[buffer(2)]], device half4* into [[buffer(3)]], uint3 at [[thread_position_in_grid]]) {
  const uint units = p.pairs / 4;
  const ulong row = ulong(at.z) * 2u * units;
  const float4 cosine = table[row + at.x];
  const float4 sine = table[row + units + at.x];
  const uint end = min(at.y * p.headsPerGroup + p.headsPerGroup, p.heads);
  for (uint head = at.y * p.headsPerGroup; head < end; ++head) {
    const ulong first = (ulong(at.z) * p.heads + head) * 2u * units + at.x;
    const float4 x = float4(from[first]);
    const float4 y = float4(from[first + units]);
    into[first] = half4(fma(x, cosine, -(y * sine)));
    into[first + units] = half4(fma(x, sine, y * cosine));
  }
}
export_kernel(rotateByTable)
