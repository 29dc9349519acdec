// Made by .ci/unify.
// clang-format off
#include "Prepare/Prepare.cpp"
#include "Prepare/TuningFile.cpp"
