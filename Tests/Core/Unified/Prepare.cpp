// Made by .ci/unify.
// clang-format off
#include "Prepare/PrepareTests.cpp"
