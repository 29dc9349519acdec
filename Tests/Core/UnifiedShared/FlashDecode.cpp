// Made by .ci/unify.
// clang-format off
#include "Ops/FlashDecode/AttentionHistory.hpp"
#include <algorithm>
#include "Harness/PlanBuffer.hpp"
#include "Ops/FlashDecode/FlashDecodeReference.hpp"
#include "Ops/FlashDecode/TokenAttention.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include <cmath>
#include <cstring>
#include <limits>
#include "Harness/SoftFloat.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/TurboSigns.hpp"
#include <numbers>
#include "Ops/FlashDecode/FlashDecodeRun.hpp"
#include <tuple>
#include "Ops/Common/EveryRun.hpp"
#include <array>
#include "CoreTests.h"
#include "Harness/RawBytes.hpp"
#include "Ops/FlashDecode/AttentionHistory.cpp"
#include "Ops/FlashDecode/FlashDecodeCase.cpp"
#include "Ops/FlashDecode/FlashDecodeCases.cpp"
#include "Ops/FlashDecode/FlashDecodeInputs.cpp"
#define kFloats kFloats_FlashDecodeOptionCases
#define kLayouts kLayouts_FlashDecodeOptionCases
#include "Ops/FlashDecode/FlashDecodeOptionCases.cpp"
#undef kLayouts
#undef kFloats
#define kLayouts kLayouts_FlashDecodeRaggedCases
#define kFloats kFloats_FlashDecodeRaggedCases
#include "Ops/FlashDecode/FlashDecodeRaggedCases.cpp"
#undef kFloats
#undef kLayouts
#define kInfinity kInfinity_FlashDecodeReference
#include "Ops/FlashDecode/FlashDecodeReference.cpp"
#undef kInfinity
#define elementAt elementAt_FlashDecodeRun
#include "Ops/FlashDecode/FlashDecodeRun.cpp"
#undef elementAt
#include "Ops/FlashDecode/TokenAttention.cpp"
