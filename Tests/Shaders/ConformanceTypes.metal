// Kernels that define the behavior of types and functions in the Metal Shading Language. HostConformanceTests.cpp has
// the expected results.
#include "../../Shaders/Common/MetalCompat.h"

kernel void smallFloats(device const float* in [[buffer(0)]], device float* out [[buffer(1)]]) {
  const half h = half(in[0]);      // 2048
  const bfloat b = bfloat(in[1]);  // 256
  const half one = half(in[2]);    // 1
  const bfloat bOne = bfloat(in[2]);
  out[0] = float(h + one + one);  // each addition rounds
  out[1] = float(b + bOne + bOne);
  half sum = h;
  sum += one;
  sum += one;
  out[2] = float(sum);
  const half4 v = half4(h) + half4(one) + half4(one);
  out[3] = float(v.x) + float(v.w);
  const bfloat2 w = bfloat2(b) + bfloat2(bOne) + bfloat2(bOne);
  out[4] = float(w.y);
  out[5] = float(half(in[3]));           // 1 + 2^-11: to even, 1
  out[6] = float(half(in[4]));           // 1 + 3 * 2^-11: to even, 1 + 2^-9
  out[7] = float(bfloat(in[5]));         // 1 + 2^-8: to even, 1
  out[8] = float(bfloat(in[6]));         // 1 + 3 * 2^-8: to even, 1 + 2^-6
  out[9] = float(half(in[7]));           // 65520: infinity
  out[10] = float(half(in[8]));          // 2^-24: the least subnormal
  out[11] = float(one / half(3.0f));     // 0x3555
  out[12] = float(bOne / bfloat(3.0f));  // 0x3eab
  out[13] = float(half(0.1f) * half(0.1f));
  out[14] = float(h - one);  // exact
  out[15] = h + 0.25f;       // half + float is float
  out[16] = float(as_type<ushort>(half(1.0f)));
  out[17] = float(as_type<ushort>(bfloat(1.0f)));
  out[18] = float(0.5h * half(2));
  out[19] = float(sqrt(half(2.0f)));
  out[20] = h > one && !(h < one) && h == half(2048.0f) ? 1.0f : 0.0f;
  out[21] = float(-one) + float(max(h, one)) + float(min(b, bOne)) + float(abs(-one));
  out[22] = float(isnan(float(bfloat(NAN))) && isnan(float(half(NAN))));
  // Sums so close to the middle of two halves that a float cannot tell on which side they are.
  out[23] = float(fma(half(0x1.004p+0f), half(0x1.ff8p-12f), half(0x1.004p+0f)));
  out[24] = float(fma(half2(half(0x1.24cp+0f)), half2(half(-0x1.bfcp-12f)), half2(half(-1.0f))).y);
  out[25] = float(isnan(float(fma(half(INFINITY), one, half(-INFINITY)))));
}
export_kernel(smallFloats)

kernel void vectors(device const float* in [[buffer(0)]], device float* out [[buffer(1)]]) {
  const float4 f = float4(in[0], in[1], in[2], in[3]);  // 1 2 3 4
  float4 g = f;
  g.xy = f.zw;  // 3 4 3 4
  out[0] = dot(g, float4(1.0f));
  const float3 s = f.zyx;  // 3 2 1
  out[1] = s.x * 100.0f + s.y * 10.0f + s.z;
  const float4 j = float4(f.yz, s.xy);  // 2 3 3 2
  out[2] = j.x * 1000.0f + j.y * 100.0f + j.z * 10.0f + j.w;
  out[3] = f[2];
  g[1] = 9.0f;
  out[4] = g.y;
  const uint3 u = uint3(1u, 2u, 3u) * 2u + 1u;  // 3 5 7
  out[5] = float(u.x + u.y * 10u + u.z * 100u);
  const int2 i = int2(-7, 7) / 2;  // -3 3
  out[6] = float(i.x * 10 + i.y);
  const uint4 bits = (uint4(1u, 2u, 4u, 8u) << 2u) | 1u;
  out[7] = float(bits.x + bits.y + bits.z + bits.w);
  out[8] = any(f > 3.0f) && !all(f > 3.0f) ? 1.0f : 0.0f;
  const float4 chosen = select(f, -f, f > 2.0f);  // 1 2 -3 -4
  out[9] = chosen.x + chosen.y + chosen.z + chosen.w;
  const half4 h = half4(f);
  const uchar4 c = uchar4(uint4(f) * 50u);
  out[10] = float(h.w) + float(c.w);
  const uint sizes = sizeof(float3) + sizeof(packed_float3) * 100;
  out[11] = float(sizes + sizeof(half3) * 10000 + sizeof(packed_half3) * 1000000);
  const float2 clamped = clamp(float2(-3.0f, 9.0f), 0.0f, 1.0f);
  out[12] = clamped.x * 10.0f + clamped.y;
  g.w += 5.0f;
  g *= 2.0f;
  out[13] = g.w;
  out[14] = float(as_type<uint>(float2(1.0f, 2.0f).y));
  const short2 shorts = as_type<short2>(0x00020001u);
  out[15] = float(shorts.x * 10 + shorts.y);
  const bfloat4 bf = bfloat4(f);
  out[16] = float(bf.z) + float4(bf).y;
  const bool2 flags = bool2(true, false);
  out[17] = any(flags) && !all(flags) && !any(!bool2(true)) ? 1.0f : 0.0f;
  const float4 total = fma(f, float4(2.0f), float4(1.0f));
  out[18] = total.w;
  out[19] = float4(f.wzyx).x + float4(f.xxyy).w;
}
export_kernel(vectors)

struct PackedRecord {
  packed_float3 position;
  float weight;
  packed_half2 pair;
  packed_uint2 indices;
};

// Records of 28 bytes: packed vectors have the alignment of their elements.
kernel void packedVectors(
    device const PackedRecord* records [[buffer(0)]], device packed_float3* out [[buffer(1)]],
    device float* sums [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const float3 position = float3(records[i].position);
  out[i] = packed_float3(position * records[i].weight);
  const half2 pair = half2(records[i].pair);
  const uint2 indices = uint2(records[i].indices);
  packed_float3 moved = records[i].position;
  moved += float3(1.0f);
  moved[1] = 0.0f;
  sums[i] = float(pair.x) + float(pair.y) + float(indices.x * 10u + indices.y) + moved.x + moved.y + moved.z;
}
export_kernel(packedVectors)

kernel void mathFunctions(device const float* in [[buffer(0)]], device float* out [[buffer(1)]]) {
  const float x = in[0];  // 0.75
  const float y = in[1];  // -2.5
  uint n = 0;
  out[n++] = exp(x);
  out[n++] = exp2(x);
  out[n++] = exp10(x);
  out[n++] = log(x);
  out[n++] = log2(x);
  out[n++] = log10(x);
  out[n++] = sin(x);
  out[n++] = cos(x);
  out[n++] = tan(x);
  out[n++] = asin(x);
  out[n++] = acos(x);
  out[n++] = atan(x);
  out[n++] = atan2(x, y);
  out[n++] = sinh(x);
  out[n++] = cosh(x);
  out[n++] = tanh(x);
  out[n++] = pow(x, y);
  out[n++] = sqrt(x);
  out[n++] = rsqrt(x);
  out[n++] = precise::exp(y);
  out[n++] = fast::exp2(y);
  out[n++] = precise::sin(y);
  out[n++] = sinpi(x);
  out[n++] = cospi(x);
  float cosine = 0.0f;
  out[n++] = sincos(x, cosine);
  out[n++] = cosine;
  out[n++] = exp(float2(x, y)).y;
  out[n++] = asinh(x);
  out[n++] = acosh(-y);
  out[n++] = atanh(x);
}
export_kernel(mathFunctions)

kernel void exactFunctions(device const float* in [[buffer(0)]], device float* out [[buffer(1)]]) {
  const float x = in[0];  // 0.75
  const float y = in[1];  // -2.5
  uint n = 0;
  out[n++] = floor(y);
  out[n++] = ceil(y);
  out[n++] = trunc(y);
  out[n++] = round(y);
  out[n++] = rint(y);
  out[n++] = fract(y);
  out[n++] = fabs(y);
  out[n++] = fmod(y, x);
  out[n++] = copysign(x, y);
  out[n++] = fmin(x, y);
  out[n++] = fmax(x, y);
  out[n++] = fdim(x, y);
  out[n++] = ldexp(x, 3);
  out[n++] = fma(x, y, 1.0f);
  out[n++] = sign(y);
  out[n++] = saturate(y);
  out[n++] = saturate(x);
  out[n++] = mix(x, y, 0.5f);
  out[n++] = step(x, y);
  out[n++] = smoothstep(0.0f, 1.0f, x);
  out[n++] = clamp(y, -1.0f, 1.0f);
  out[n++] = min3(x, y, 9.0f);
  out[n++] = max3(x, y, 9.0f);
  out[n++] = median3(x, y, 9.0f);
  out[n++] = select(1.0f, 2.0f, x > y);
  out[n++] = float(isnan(x * NAN) && !isnan(x) && isinf(INFINITY) && isfinite(x) && !isfinite(-INFINITY));
  out[n++] = exp2(3.0f) + precise::exp2(3.0f) + fast::exp2(3.0f);
  out[n++] = exp2(-INFINITY) + exp(-200.0f);
  out[n++] = float(exp2(200.0f) == INFINITY);
  out[n++] = max(NAN, x);
  // geometric
  const float3 a = float3(1.0f, 2.0f, 2.0f);
  const float3 b = float3(0.0f, 1.0f, 0.0f);
  out[n++] = dot(a, b);
  out[n++] = length(a);
  out[n++] = length_squared(a);
  out[n++] = distance(a, b * 2.0f);
  out[n++] = cross(a, b).x;
  out[n++] = cross(a, b).z;
  out[n++] = normalize(float2(3.0f, 4.0f)).y;
  out[n++] = reflect(a, b).y;
  out[n++] = dot(a.xy, b.yx);
}
export_kernel(exactFunctions)

kernel void integerFunctions(device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]]) {
  const uint x = in[0];      // 0x00f0a001
  const int i = int(in[1]);  // -5
  uint n = 0;
  out[n++] = popcount(x);
  out[n++] = clz(x);
  out[n++] = ctz(x << 4);
  out[n++] = reverse_bits(x);
  out[n++] = rotate(x, 8u);
  out[n++] = extract_bits(x, 12, 8);
  out[n++] = insert_bits(x, 0xffu, 4, 8);
  out[n++] = mulhi(x, 0x10000u);
  out[n++] = uint(mulhi(i, 3));
  out[n++] = uint(abs(i));
  out[n++] = absdiff(i, 7);
  out[n++] = uint(min(i, 3)) ^ max(x, 1u) ^ clamp(9u, 1u, 4u);
  out[n++] = uint(addsat(uchar(250), uchar(10)));
  out[n++] = uint(subsat(uchar(5), uchar(10)));
  out[n++] = uint(int(addsat(short(-32768), short(-1))));
  out[n++] = hadd(7u, 8u);
  out[n++] = rhadd(7u, 8u);
  out[n++] = uint(extract_bits(i, 0, 4));
  out[n++] = clz(0u) + ctz(0u) + uint(clz(ushort(1)));
  out[n++] = uint(popcount(uint2(3u, 7u)).y);
  out[n++] = mad24(3u, 4u, 5u);
}
export_kernel(integerFunctions)
