// How encoding time grows with the encoded work. Nothing runs.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::bench {

enum class Encoded : uint8_t {
  appends,         // n calls that append a token to one sequence, in one encoder
  appendToMany,    // one call that appends a token to each of n sequences
  attendOverMany,  // one call with n sequences of one row each
  attendWithRows,  // one call with one sequence of n rows
};
constexpr Encoded kEncoded[] = {Encoded::appends, Encoded::appendToMany, Encoded::attendOverMany,
                                Encoded::attendWithRows};
const char* name(Encoded encoded);

// The minimum of several runs, in seconds of CPU time for all n.
Result<double> timeEncoding(Encoded encoded, uint32_t n, uint32_t repetitions);

}  // namespace mnk::bench
