// Types shared by host code and the kernels of the math probe and of the layout probe.
#pragma once
#include "../Common/Layout.h"

enum MathProbeBuffer {
  kMathProbeNumbers = 0,
  kMathProbeFound = 1,
};

// Numbers, and what is found of them at the same place. Pairs to divide follow, with their quotients.
enum MathProbeNumber {
  kMathProbeNaN = 0,       // 1 if it is ordered with the infinity, else 0
  kMathProbeInfinity = 1,  // minus itself
  kMathProbePairs = 2,
  kMathProbePairCount = 8,
};

enum MatrixLayoutBuffer {
  kMatrixLayoutFound = 0,
};

// Two numbers for each of the 32 lanes of a simdgroup.
enum MatrixLayoutFinding {
  kMatrixLayoutFirst = 0,         // row * 8 + column of the lane's first element
  kMatrixLayoutSecondIsNext = 1,  // 1 if its second element is in the next column of the same row, else 0
  kMatrixLayoutFindingsPerLane = 2,
};
