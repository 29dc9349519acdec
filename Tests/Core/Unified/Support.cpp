// Made by .ci/unify.
// clang-format off
#include "Support/ByteRangesTests.cpp"
#include "Support/FileReplacementTests.cpp"
#include "Support/FormatTests.cpp"
#include "Support/ResultTests.cpp"
#include "Support/SoftFloatTests.cpp"
