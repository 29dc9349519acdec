// Made by .ci/unify.
// clang-format off
#include "CAPI/CApiCacheStepTests.cpp"
#include "CAPI/CApiCacheTests.cpp"
#include "CAPI/CApiFlashDecodeTests.cpp"
#include "CAPI/CApiKVDequantizeTests.cpp"
#include "CAPI/CApiKVQuantizeRefusalTests.cpp"
#include "CAPI/CApiKVQuantizeTests.cpp"
#include "CAPI/CApiKVSourceTests.cpp"
#include "CAPI/CApiMultiRoPETests.cpp"
#include "CAPI/CApiOwnershipTests.cpp"
#include "CAPI/CApiPrepareTests.cpp"
#include "CAPI/CApiTests.cpp"
