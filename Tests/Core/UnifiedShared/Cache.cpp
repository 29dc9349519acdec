// Made by .ci/unify.
// clang-format off
#include "Cache/KilledSave.cpp"
