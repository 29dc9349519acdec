// Types shared by the math probe's host code and kernel: buffer indices and the places of numbers.
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
