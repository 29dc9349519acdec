// Element types that a function constant selects; the values are those of the host's DType.
#pragma once

enum FloatType {
  kFloat32 = 0,
  kFloat16 = 1,
  kBFloat16 = 2,
};
