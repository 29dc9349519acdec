// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Checking/CheckedRun.cpp"
#include "Checking/DeclaredAccesses.cpp"
#include "Checking/Findings.cpp"
#include "Checking/GuardedCopies.cpp"
#include "Checking/SourceLocations.cpp"
#include "Checking/Traps.cpp"
#pragma clang attribute pop
#include "Checking/GuardedRun.cpp"
#include "Checking/Observer.cpp"
#include "Checking/Shadow.cpp"
