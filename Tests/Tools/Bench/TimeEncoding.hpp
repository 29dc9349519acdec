// How the time that encoding takes grows with what is encoded. Nothing runs.
#pragma once
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::bench {

enum class Encoded : uint8_t {
  appends,         // n calls that append a token to one sequence, in one encoder
  appendToMany,    // one call that appends a token to each of n sequences
  attendOverMany,  // one call of n sequences with a row each
  attendWithRows,  // one call of one sequence with n rows
};
constexpr Encoded kEncoded[] = {Encoded::appends, Encoded::appendToMany, Encoded::attendOverMany,
                                Encoded::attendWithRows};
const char* name(Encoded encoded);

// The least of some runs, in seconds of processor time for all n.
Result<double> timeEncoding(Encoded encoded, uint32_t n, uint32_t repetitions);

}  // namespace mnk::bench
