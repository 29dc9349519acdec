// Made by .ci/unify.
// clang-format off
#include "Ops/Common/BindingCases.cpp"
#include "Ops/Common/KVCodecReference.cpp"
#include "Ops/Common/KVCodecTables.cpp"
#include "Ops/Common/StoredVector.cpp"
#include "Ops/Common/TurboSigns.cpp"
#include "Ops/KVCacheWrite/KVCacheWriteSourceCases.cpp"
