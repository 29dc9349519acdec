// Types shared by the layout probe's host code and kernel: buffer indices and the result per lane.
#pragma once
#include "../Common/Layout.h"

enum MatrixLayoutBuffer {
  kMatrixLayoutFound = 0,
};

// Two numbers for each of the 32 lanes of a simdgroup.
enum MatrixLayoutFinding {
  kMatrixLayoutFirst = 0,         // row * 8 + column of the lane's first element
  kMatrixLayoutSecondIsNext = 1,  // 1 if its second element is in the next column of the same row, else 0
  kMatrixLayoutFindingsPerLane = 2,
};
