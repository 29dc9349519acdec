// Quantizes numbers with tables in threadgroup memory: the codebook, then the lower boundary of each code. A polynomial
// estimates the code and is at most one too large; a comparison with a boundary corrects it. The code is therefore
// exact, the number of boundaries below the number, however the polynomial is rounded.
//
// If numbers shrink in small steps, a third table, of cells, saves the estimate. A cell is a codebook entry and the
// bits of the number closest to zero that has its code. Cells of negative entries come first. Of both signs, the cell
// closest to zero comes first.
#pragma once
#include "../Common/KVCodec.h"
#include "CodeGuesses.h"

constant constexpr uint kBoundariesAt = 256;
constant constexpr uint kCellsAt = kBoundariesAt + 258;  // even, because a cell is two floats
constant constexpr uint kMaxCells = 32;
constant constexpr uint kCodeTableFloats = kCellsAt + 2 * kMaxCells;

// The boundary between entries i and i + 1 of the positive half of a codebook.
inline float boundaryBeyond(CodeBook book, uint i) {
  return kvIsTurbo ? 0.5f * (book.levels[i] + book.levels[i + 1u]) : book.boundaries[i];
}

// Fills the tables, the one of cells if `hasCells`; the threads, at least 32, share the work. A thread stores both
// signs of an entry. Indices of boundaries are clamped instead of tested, so that the loads do not wait for one
// another.
MNK_SHARED void fillCodeTables(threadgroup float* tables, uint bits, bool hasCells, uint index, uint threads) {
  const CodeBook book = codeBook(bits);
  const uint middle = book.halfCount;
  threadgroup float* boundaries = tables + kBoundariesAt;
  const uint passes = (middle + 31u) / 32u;  // not by `threads`, so that compilers know the number
  for (uint pass = 0; pass < passes; ++pass) {
    const uint i = pass * threads + index;
    if (i >= middle) {
      continue;
    }
    const float level = book.levels[i];
    const float inner = i == 0u ? 0.0f : boundaryBeyond(book, max(i, 1u) - 1u);
    const float largest = 3.4028235e38f;
    const float outer = i + 1u == middle ? largest : boundaryBeyond(book, min(i, middle - 2u));
    tables[middle + i] = level;
    tables[middle - 1u - i] = -level;
    boundaries[middle + i] = inner;
    boundaries[middle - 1u - i] = -outer;
    if (i + 1u == middle) {
      boundaries[2u * middle] = largest;
    }
    if (hasCells) {
      // A number on a boundary has the lower code.
      threadgroup uint2* cells = reinterpret_cast<threadgroup uint2*>(tables + kCellsAt);
      cells[i] = uint2(as_type<uint>(-level), i == 0u ? 0u : as_type<uint>(-inner));
      cells[middle + i] = uint2(as_type<uint>(level), i == 0u ? 0u : as_type<uint>(inner) + 1u);
    }
  }
}

inline constant const float* codeGuess(uint bits) {
  return kvIsTurbo ? kTurboGuesses + 6u * (bits - 2u) : kMlx1Guesses + 6u * (min(bits, 7u) - 4u);
}

// x * factor, clamped to the domain of the polynomial, beyond which every code is the first or the last one. Up to 6
// bits, the domain has room for the factor, so that x is clamped only once for several factors.
inline float4 withinGuess(constant const float* guess, uint bits, float4 x, float factor) {
  const float4 limit = float4(guess[5]);
  return bits <= 6u ? clamp(x, -limit, limit) * factor : clamp(x * factor, -limit, limit);
}

// The entry of a table at an offset in bytes. Codes are searched as offsets, which saves shifts.
template <typename T>
inline T entryAt(threadgroup const float* table, uint offset) {
  return *reinterpret_cast<threadgroup const T*>(reinterpret_cast<threadgroup const uchar*>(table) + offset);
}
inline float4 entriesAt(threadgroup const float* table, uint4 offsets) {
  return float4(
      entryAt<float>(table, offsets.x), entryAt<float>(table, offsets.y), entryAt<float>(table, offsets.z),
      entryAt<float>(table, offsets.w));
}

// The code, times four, of a number that withinGuess has clamped.
inline uint codeOffset(threadgroup const float* tables, constant const float* guess, uint bits, float x) {
  // The spacing of floats in [2, 4): the low bits of the sum are the estimate, rounded to an integer.
  const float step = 0x1p-22f;
  const float a = fabs(x);
  float slope = step * guess[1];
  if (bits > 5u) {
    slope += a * (step * guess[2] + a * (step * guess[3] + a * (step * guess[4])));
  }
  const float sum = x * (step * guess[0] + a * slope) + (2.0f + step * float(1u << (bits - 1u)));
  const uint offset = as_type<uint>(sum) << 2;  // discards the bits of 2.0
  return entryAt<float>(tables + kBoundariesAt, offset) < x ? offset : offset - 4u;
}
inline uint4 codeOffsets(threadgroup const float* tables, constant const float* guess, uint bits, float4 x) {
  return uint4(
      codeOffset(tables, guess, bits, x.x), codeOffset(tables, guess, bits, x.y), codeOffset(tables, guess, bits, x.z),
      codeOffset(tables, guess, bits, x.w));
}

// The offset of the cell of a code.
inline uint cellOffset(uint codeOffset, uint bits) {
  const uint mirror = codeOffset < (2u << bits) ? (4u << bits) - 8u : 0u;
  return (2u * codeOffset) ^ mirror;
}
inline uint4 cellOffsets(uint4 offsets, uint bits) {
  return uint4(
      cellOffset(offsets.x, bits), cellOffset(offsets.y, bits), cellOffset(offsets.z, bits),
      cellOffset(offsets.w, bits));
}

// Moves to the cells of x, each of which is the present one or the one before. `closest` is 0, or that of the present
// cells. Of two numbers with the same sign, the one closer to zero has the smaller bits.
inline void moveToCells(
    threadgroup const float* tables, float4 x, thread uint4& offsets, thread float4& entries, thread uint4& closest) {
  const uint4 bits = as_type<uint4>(x);
  MNK_UNROLL
  for (ushort e = 0; e < 4; ++e) {
    offsets[e] = bits[e] < closest[e] ? offsets[e] - 8u : offsets[e];
    const uint2 cell = entryAt<uint2>(tables + kCellsAt, offsets[e]);
    entries[e] = as_type<float>(cell.x);
    closest[e] = cell.y;
  }
}
