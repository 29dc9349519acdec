// Made by .ci/unify.
// clang-format off
#include "Support/ByteRanges.cpp"
#include "Support/Crc32.cpp"
#include "Support/Error.cpp"
#include "Support/File.cpp"
#include "Support/FileReplacement.cpp"
#include "Support/Format.cpp"
#include "Support/Guard.cpp"
#include "Support/IntervalSet.cpp"
#include "Support/Rule.cpp"
#include "Support/TemporaryFile.cpp"
