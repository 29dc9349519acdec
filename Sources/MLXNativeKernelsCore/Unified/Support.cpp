// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Support/ByteRanges.cpp"
#include "Support/Error.cpp"
#include "Support/File.cpp"
#include "Support/FileReplacement.cpp"
#include "Support/Format.cpp"
#include "Support/Guard.cpp"
#include "Support/IntervalSet.cpp"
#include "Support/Rule.cpp"
#include "Support/TemporaryFile.cpp"
#pragma clang attribute pop
#include "Support/Crc32.cpp"
