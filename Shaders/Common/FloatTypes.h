// The element types that kernels tell apart by a function constant, with the numbers of the host's dtypes.
#pragma once

enum FloatType {
  kFloat32 = 0,
  kFloat16 = 1,
  kBFloat16 = 2,
};
