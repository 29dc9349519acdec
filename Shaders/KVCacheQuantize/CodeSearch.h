// Quantizes numbers with two tables in threadgroup memory: the codebook, then the lower boundary of each code. A
// polynomial estimates the code and is at most one too large; a comparison with a boundary corrects it. The code is
// therefore exact, the number of boundaries below the number, however the polynomial is rounded.
#pragma once
#include "../Common/KVCodec.h"
#include "CodeGuesses.h"

constant constexpr uint kCodeTableFloats = 256 + 257;

// The lower boundary of a code. The one past the last code is larger than any number.
inline float lowerBoundary(CodeBook book, uint code) {
  const uint middle = book.halfCount;
  if (code == middle) {
    return 0.0f;
  }
  const uint i = code > middle ? code - middle - 1u : middle - 1u - code;
  float boundary = 3.4028235e38f;
  if (i + 1u < middle) {
    boundary = kvIsTurbo ? 0.5f * (book.levels[i] + book.levels[i + 1u]) : book.boundaries[i];
  }
  return code > middle ? boundary : -boundary;
}

MNK_SHARED void fillCodeTables(threadgroup float* tables, uint bits, uint index, uint threads) {
  fillCodebook(tables, bits, index, threads);
  for (uint code = index; code <= (1u << bits); code += threads) {
    tables[256u + code] = lowerBoundary(codeBook(bits), code);
  }
}

inline constant const float* codeGuess(uint bits) {
  return kvIsTurbo ? kTurboGuesses + 6u * (bits - 2u) : kMlx1Guesses + 6u * (min(bits, 7u) - 4u);
}

// Clamps to the domain of the polynomial, beyond which every code is the first or the last one.
inline float4 withinGuess(constant const float* guess, float4 x) {
  return clamp(x, float4(-guess[5]), float4(guess[5]));
}

// The code of a number that withinGuess has clamped.
inline uint codeOf(threadgroup const float* tables, constant const float* guess, uint bits, float x) {
  // The spacing of floats in [2, 4): the low bits of the sum are the estimate, rounded to an integer.
  const float step = 0x1p-22f;
  const float a = fabs(x);
  float slope = step * guess[1];
  if (bits > 5u) {
    slope += a * (step * guess[2] + a * (step * guess[3] + a * (step * guess[4])));
  }
  const float sum = x * (step * guess[0] + a * slope) + (2.0f + step * float(1u << (bits - 1u)));
  const uint code = as_type<uint>(sum) & 0x3fffffffu;
  return tables[256u + code] < x ? code : code - 1u;
}
inline uint4 codesOf(threadgroup const float* tables, constant const float* guess, uint bits, float4 x) {
  return uint4(
      codeOf(tables, guess, bits, x.x), codeOf(tables, guess, bits, x.y), codeOf(tables, guess, bits, x.z),
      codeOf(tables, guess, bits, x.w));
}
inline float4 codebookEntries(threadgroup const float* levels, uint4 codes) {
  return float4(levels[codes.x], levels[codes.y], levels[codes.z], levels[codes.w]);
}
