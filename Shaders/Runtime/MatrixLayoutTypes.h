// What the layout probe's host code and kernel agree on: buffer indices, and what it says about each lane.
#pragma once
#include "../Common/Layout.h"

enum MatrixLayoutBuffer {
  kMatrixLayoutFound = 0,
};

// Two numbers for each of the 32 lanes of a simdgroup.
enum MatrixLayoutFinding {
  kMatrixLayoutFirst = 0,         // row * 8 + column of the lane's first element
  kMatrixLayoutSecondIsNext = 1,  // 1: its second element is the next column of that row; 0: it is another one
  kMatrixLayoutFindingsPerLane = 2,
};
