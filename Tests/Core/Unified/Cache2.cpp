// Made by .ci/unify.
// clang-format off
#include "Cache/AttentionCachePropertyTests.cpp"
#include "Cache/AttentionCacheRuleTests.cpp"
