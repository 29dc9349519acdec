// Every rule of KVCacheWrite, broken on purpose.
#include "Harness/EveryDevice.hpp"
#include "Harness/PlanBuffer.hpp"
#include "KVCacheWriteRun.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "Ops/Common/BrokenRule.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteRules.hpp"

namespace mnk::test {

namespace {

using Op = KVCacheWrite;
using List = std::vector<uint32_t>;

constexpr std::string_view kMakeTensors = "Make the tensors before writing them.";
constexpr std::string_view kMakeCache = "Make the cache's tensors before writing to it.";
constexpr std::string_view kCacheRank = "Reshape the cache; keys and values need the same rank.";
constexpr std::string_view kOnePair = "Use one pair of dtypes for both, or write keys and values separately.";
constexpr std::string_view kOtherDType = "Convert the keys, or make the cache with another dtype.";
constexpr std::string_view kAnyPair = "f32, f16 or bf16 to any of these, or equal dtypes";
constexpr std::string_view kSameCaches = "Make both with the same sequences, heads and capacity.";
constexpr std::string_view kKeysFit = "Reshape the keys, or write to a cache made for them.";
constexpr std::string_view kValuesFit = "Reshape the values, or write to a cache made for them.";
constexpr std::string_view kTokenMajor =
    "[tokens, heads, headDim], [heads, headDim] or [sequences, tokens, heads, headDim]";
constexpr std::string_view kHeadMajor = "[heads, tokens, headDim] or [sequences, heads, tokens, headDim]";
constexpr std::string_view kStateKeys = "Reshape the keys, or state where they lie with a HeadsView.";
constexpr std::string_view kStateValues = "Reshape the values, or state where they lie with a HeadsView.";
constexpr std::string_view kStateHeadMajor =
    "Pass [tokens, heads, headDim], or state that the source is head-major with a HeadsView.";
constexpr std::string_view kStateTokenMajor =
    "Pass [heads, tokens, headDim], or state that the source is token-major with a HeadsView.";
constexpr std::string_view kStrides = "Correct the offset, the strides or the counts.";
constexpr std::string_view kShorter = "Pass a smaller offset or fewer tokens, or a longer source.";
constexpr std::string_view kFewerPinned = "fewer pinned slots than the ring's capacity, and none in a linear cache";
constexpr std::string_view kPinFewer = "Pin fewer slots, or make the cache a larger ring.";
constexpr std::string_view kGrow = "Grow the cache, or make it a ring.";
constexpr std::string_view kU32 = "Pass sequences and positions as u32.";
constexpr std::string_view kSplit = "Split the cache or the write.";
constexpr std::string_view kOneEach = "Give every token one sequence and one position.";
constexpr std::string_view kApart = "Write from a tensor that is not part of the cache.";
constexpr std::string_view kSplitRows = "Split the rows over several writes.";
constexpr std::string_view kHeadMajorCache = "[heads, capacity, headDim] or [sequences, heads, capacity, headDim]";

constexpr uint64_t kTooLong = uint64_t{1} << 31;

// Three tokens of two heads, f32 [3, 2, 4] and [3, 2, 6], to a linear f16 cache of 2 sequences and 5 slots.
const KVCacheWriteCase kSound{.name = "a sound write",
                              .wrap = KVWrap::linear,
                              .valueHeadDim = 6,
                              .capacity = 5,
                              .sequences = 2,
                              .sourceTokens = 3,
                              .sequence = 1,
                              .position = 2};

void setRows(Op& op, RowIndices sequences, RowIndices positions) {
  op.rows = Op::Rows{std::move(sequences), std::move(positions)};
}

// A tensor over the bytes of another.
Tensor alias(const Tensor& of, DType dtype, std::initializer_list<uint64_t> extents, uint64_t offset = 0) {
  return REQUIRE(Tensor::over(of.buffer(), dtype, REQUIRE(Shape::make(extents)), of.byteOffset() + offset));
}

const BrokenRule<Op> kBroken[] = {
    {"a source has no memory", "keys without memory", "tensors with memory", kMakeTensors,
     [](Op& op) { op.keys = {}; }},
    {"a source has no memory", "values without memory", "tensors with memory", kMakeTensors,
     [](Op& op) { op.values = Tensor{}; }},
    {"the cache has no memory", "a key cache without memory", "tensors with memory", kMakeCache,
     [](Op& op) { op.into.keys = {}; }},
    {"the cache has no memory", "a value cache without memory", "tensors with memory", kMakeCache,
     [](Op& op) { op.into.values = Tensor{}; }},
    {"values are given but the cache has none", "values, and a cache of keys alone", "a cache with values",
     "Give the cache a tensor for values, or write keys alone.", [](Op& op) { op.into.values.reset(); }},
    {"the cache has the wrong rank", "keys [2, 20], values [2, 2, 5, 6]", kHeadMajorCache, kCacheRank,
     [](Op& op) {
       op.into.keys = planTensor(DType::f16, {2, 20});
     }},
    {"the cache has the wrong rank", "keys [2, 2, 5, 4], values [4, 5, 6]", kHeadMajorCache, kCacheRank,
     [](Op& op) {
       op.into.values = planTensor(DType::f16, {4, 5, 6});
     }},
    {"the cache has the wrong rank", "[1, 2, 5, 2, 4]",
     "[capacity, heads, headDim] or [sequences, capacity, heads, headDim]", kCacheRank,
     [](Op& op) {
       op.values.reset();
       op.into.layout = KVLayout::tokenMajor;
       op.into.keys = planTensor(DType::f16, {1, 2, 5, 2, 4});
     }},
    {"keys have the wrong rank", "[24]", kTokenMajor, kStateKeys,
     [](Op& op) { op.keys = planTensor(DType::f32, {24}); }},
    {"keys have the wrong rank", "[2, 4]", kHeadMajor, kStateKeys,
     [](Op& op) {
       op.sourceLayout = KVLayout::headMajor;
       op.keys = planTensor(DType::f32, {2, 4});
     }},
    {"values have the wrong rank", "[1, 1, 3, 2, 6]", kTokenMajor, kStateValues,
     [](Op& op) {
       op.values = planTensor(DType::f32, {1, 1, 3, 2, 6});
     }},
    {"values have the wrong rank", "[2, 6]", kHeadMajor, kStateValues,
     [](Op& op) {
       op.values = HeadsView(planTensor(DType::f32, {2, 6}), KVLayout::headMajor);
     }},
    {"vectors lie outside of their tensor",
     "keys of 1 x 3 tokens, 2 heads of 4 at 5, strides 60, 20 and 4, in 52 elements", "every vector inside", kStrides,
     [](Op& op) {
       op.keys = HeadsView(planTensor(DType::f32, {52}), {.tokens = 3,
                                                          .heads = 2,
                                                          .headDim = 4,
                                                          .offset = 5,
                                                          .sequenceStride = 60,
                                                          .tokenStride = 20,
                                                          .headStride = 4});
     }},
    {"vectors lie outside of their tensor",
     "values of 1 x 3 tokens, 2 heads of 6 at 9, strides 60, 20 and 6, in 60 elements", "every vector inside", kStrides,
     [](Op& op) {
       op.values = REQUIRE(HeadsView::columns(planTensor(DType::f32, {3, 20}), 9, 2, 6));
     }},
    {"a head-major source is read as token-major", "keys of 3 heads of 4 in token-major [2, 3, 4]",
     "2 heads on the second-to-last axis", kStateHeadMajor,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {2, 3, 4});
     }},
    {"a head-major source is read as token-major", "values of 3 heads of 6 in token-major [1, 2, 3, 6]",
     "2 heads on the second-to-last axis", kStateHeadMajor,
     [](Op& op) {
       op.values = planTensor(DType::f32, {1, 2, 3, 6});
     }},
    {"a token-major source is read as head-major", "keys of 3 heads of 4 in head-major [3, 2, 4]",
     "2 heads on the third-to-last axis", kStateTokenMajor, [](Op& op) { op.sourceLayout = KVLayout::headMajor; }},
    {"a token-major source is read as head-major", "values of 3 heads of 6 in head-major [3, 2, 6]",
     "2 heads on the third-to-last axis", kStateTokenMajor, [](Op& op) { op.values->layout = KVLayout::headMajor; }},
    {"this pair of dtypes cannot be written", "u32 to f16", kAnyPair, kOtherDType,
     [](Op& op) {
       op.keys = planTensor(DType::u32, {3, 2, 4});
     }},
    {"this pair of dtypes cannot be written", "f32 to u16", kAnyPair, kOtherDType,
     [](Op& op) {
       op.into.keys = planTensor(DType::u16, {2, 2, 5, 4});
     }},
    {"this pair of dtypes cannot be written", "i32 to u32", kAnyPair, kOtherDType,
     [](Op& op) {
       op.keys = planTensor(DType::i32, {3, 2, 4});
       op.into.keys = planTensor(DType::u32, {2, 2, 5, 4});
     }},
    {"values have another dtype than keys", "f16 to f16", "f32 to f16, as for keys", kOnePair,
     [](Op& op) {
       op.values = planTensor(DType::f16, {3, 2, 6});
     }},
    {"values have another dtype than keys", "f32 to bf16", "f32 to f16, as for keys", kOnePair,
     [](Op& op) {
       op.into.values = planTensor(DType::bf16, {2, 2, 5, 6});
     }},
    {"the cache has no capacity", "head-major [2, 2, 0, 4]", "at least one slot",
     "Make a cache with a capacity of at least 1.",
     [](Op& op) {
       op.into.keys = planTensor(DType::f16, {2, 2, 0, 4});
     }},
    {"the value cache differs from the key cache", "[2, 2, 4, 6]", "[2, 2, 5, 4], but for headDim", kSameCaches,
     [](Op& op) {
       op.into.values = planTensor(DType::f16, {2, 2, 4, 6});
     }},
    {"the value cache differs from the key cache", "[2, 3, 5, 6]", "[2, 2, 5, 4], but for headDim", kSameCaches,
     [](Op& op) {
       op.into.values = planTensor(DType::f16, {2, 3, 5, 6});
     }},
    {"the value cache differs from the key cache", "[3, 2, 5, 6]", "[2, 2, 5, 4], but for headDim", kSameCaches,
     [](Op& op) {
       op.into.values = planTensor(DType::f16, {3, 2, 5, 6});
     }},
    {"keys do not have the cache's heads and headDim", "5 heads of 4 in token-major [3, 5, 4]", "2 heads of 4",
     kKeysFit,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {3, 5, 4});
     }},
    {"keys do not have the cache's heads and headDim", "2 heads of 5 in token-major [3, 2, 5]", "2 heads of 4",
     kKeysFit,
     [](Op& op) {
       op.keys = planTensor(DType::f32, {3, 2, 5});
     }},
    {"keys do not have the cache's heads and headDim", "1 heads of 4 in a strided view of [3, 2, 4]", "2 heads of 4",
     kKeysFit, [](Op& op) { op.keys.strides = HeadsView::Strides{.tokens = 3, .headDim = 4, .tokenStride = 8}; }},
    {"values do not have the cache's heads and headDim", "1 heads of 6 in token-major [3, 1, 6]", "2 heads of 6",
     kValuesFit,
     [](Op& op) {
       op.values = planTensor(DType::f32, {3, 1, 6});
     }},
    {"values do not have the cache's heads and headDim", "2 heads of 4 in token-major [3, 2, 4]", "2 heads of 6",
     kValuesFit,
     [](Op& op) {
       op.values = planTensor(DType::f32, {3, 2, 4});
     }},
    {"values hold another number of tokens than keys", "2 tokens", "3 tokens",
     "Pass keys and values of the same tokens.",
     [](Op& op) {
       op.values = planTensor(DType::f32, {2, 2, 6});
     }},
    {"values hold another number of tokens than keys", "3 x 1 tokens", "3 tokens",
     "Pass keys and values of the same tokens.",
     [](Op& op) {
       op.values = planTensor(DType::f32, {3, 1, 2, 6});
     }},
    {"an extent is too large for the kernel", "2147483648", "less than 2^31 on every axis", kSplit,
     [](Op& op) {
       op.values.reset();
       op.keys = planTensor(DType::f32, {kTooLong, 2, 4});
     }},
    {"an extent is too large for the kernel", "4294967296", "less than 2^31 on every axis", kSplit,
     [](Op& op) {  // all tokens of a sequence are one, and so are all sequences
       op.values.reset();
       op.keys.strides = {.sequences = 1 << 16, .tokens = 1 << 16, .heads = 2, .headDim = 4, .headStride = 4};
     }},
    {"an extent is too large for the kernel", "4294967296", "less than 2^31 on every axis", kSplit,
     [](Op& op) {  // the product wraps around
       op.values.reset();
       const uint64_t long64 = uint64_t{1} << 32;
       op.keys.strides = {.sequences = long64, .tokens = long64, .heads = 2, .headDim = 4, .headStride = 4};
     }},
    {"an extent is too large for the kernel", "2147483648", "less than 2^31 on every axis", kSplit,
     [](Op& op) {
       op.values.reset();
       op.into.values.reset();
       op.into.keys = planTensor(DType::f16, {2, 2, kTooLong, 4});
     }},
    {"an extent is too large for the kernel", "2147483649", "less than 2^31 on every axis", kSplit,
     [](Op& op) {
       op.values = planTensor(DType::f32, {3, 2, kTooLong + 1});
       op.into.values = planTensor(DType::f16, {2, 2, 5, kTooLong + 1});
     }},
    {"the write reads past the end of the source", "offset 2 and 2 tokens", "at most 3 tokens with the offset",
     kShorter, [](Op& op) { op.sourceOffset = 2, op.tokens = 2; }},
    {"the write reads past the end of the source", "offset 4 and 0 tokens", "at most 3 tokens with the offset",
     kShorter, [](Op& op) { op.sourceOffset = 4; }},
    {"the write reads past the end of the source", "offset 18446744073709551615 and 2 tokens",
     "at most 3 tokens with the offset", kShorter, [](Op& op) { op.sourceOffset = UINT64_MAX, op.tokens = 2; }},
    {"the write reads past the end of the source", "offset 1 and 4 tokens", "at most 3 tokens of a ring", kShorter,
     [](Op& op) { op.sourceOffset = 1, op.tokens = 4, op.sourceIsRing = true; }},
    {"the cache has no room for its pinned slots", "1 pinned slots in a linear cache of 5", kFewerPinned, kPinFewer,
     [](Op& op) { op.into.pinned = 1; }},
    {"the cache has no room for its pinned slots", "5 pinned slots in a ring of 5", kFewerPinned, kPinFewer,
     [](Op& op) { op.into.wrap = KVWrap::ring, op.into.pinned = 5; }},
    {"the sequence is not in the cache", "sequence 2", "less than 2", "Pass a sequence that the cache holds.",
     [](Op& op) { op.sequence = 2; }},
    {"the sequence is not in the cache", "sequence 4294967297", "less than 2", "Pass a sequence that the cache holds.",
     [](Op& op) { op.sequence = (uint64_t{1} << 32) + 1; }},
    {"the position is too large to count", "position 18446744073709551613 + 3 tokens", "less than 2^64",
     "Pass a smaller position.", [](Op& op) { op.into.wrap = KVWrap::ring, op.position = UINT64_MAX - 2; }},
    {"the write runs past the end of a linear cache", "position 3 + 3 tokens", "at most capacity 5", kGrow,
     [](Op& op) { op.position = 3; }},
    {"the write runs past the end of a linear cache", "position 4294967296 + 3 tokens", "at most capacity 5", kGrow,
     [](Op& op) { op.position = uint64_t{1} << 32; }},
    {"row indices are not u32", "i32 [3]", "a u32 tensor with memory, or a list", kU32,
     [](Op& op) {
       setRows(op, planTensor(DType::i32, {3}), List{0, 1, 2});
     }},
    {"row indices are not u32", "a tensor without memory", "a u32 tensor with memory, or a list", kU32,
     [](Op& op) {
       setRows(op, List{0, 1, 0}, Tensor{});
     }},
    {"the rows do not match the tokens", "2 sequences and 3 positions", "3 of each, one for a token", kOneEach,
     [](Op& op) {
       setRows(op, List{0, 1}, List{0, 1, 2});
     }},
    {"the rows do not match the tokens", "3 sequences and 4 positions", "3 of each, one for a token", kOneEach,
     [](Op& op) {
       setRows(op, List{0, 1, 0}, planTensor(DType::u32, {4}));
     }},
    {"the write has too many rows", "1025 rows", "at most 1024", kSplitRows,
     [](Op& op) {
       op.values.reset();
       op.keys = planTensor(DType::f32, {1025, 2, 4});
       setRows(op, List(1025), planTensor(DType::u32, {1025}));
     }},
    {"a row names a sequence that is not in the cache", "sequence 7", "less than 2",
     "Pass sequences that the cache holds.",
     [](Op& op) {
       setRows(op, List{0, 7, 2}, List{0, 1, 2});
     }},
    {"a row runs past the end of a linear cache", "position 5", "less than capacity 5", kGrow,
     [](Op& op) {
       setRows(op, List{0, 1, 1}, List{5, 1, 2});
     }},
    {"source and destination share memory", "keys overlapping the key cache", "separate memory", kApart,
     [](Op& op) {
       op.values.reset();
       op.keys = alias(op.into.keys, DType::f32, {1, 2, 4}, 16);
     }},
    {"source and destination share memory", "values overlapping the key cache", "separate memory", kApart,
     [](Op& op) {
       op.values = alias(op.into.keys, DType::f32, {1, 2, 6});
       op.keys = planTensor(DType::f32, {1, 2, 4});
     }},
    {"source and destination share memory", "values overlapping the value cache", "separate memory", kApart,
     [](Op& op) {
       op.values = alias(op.into.values.value(), DType::f32, {1, 2, 6}, 4);
       op.keys = planTensor(DType::f32, {1, 2, 4});
     }},
    {"source and destination share memory", "positions overlapping the value cache", "separate memory", kApart,
     [](Op& op) {
       setRows(op, List{0, 1, 0}, alias(op.into.values.value(), DType::u32, {3}));
     }},
    {"source and destination share memory", "sequences overlapping the key cache", "separate memory", kApart,
     [](Op& op) {
       setRows(op, alias(op.into.keys, DType::u32, {3}), List{0, 1, 2});
     }},
    {"source and destination share memory", "the key cache overlapping the value cache", "separate memory", kApart,
     [](Op& op) {
       const auto both = std::make_shared<PlanBuffer>(2 * 2 * 5 * (4 + 6) * 2);
       const auto over = [&](std::initializer_list<uint64_t> extents, uint64_t offset) {
         return REQUIRE(Tensor::over(both, DType::f16, REQUIRE(Shape::make(extents)), offset));
       };
       op.into.keys = over({2, 2, 5, 4}, 0);
       op.into.values = over({2, 2, 5, 6}, 158);
     }},
};

Op soundOp() {
  return makeOp(kSound,
                [](DType dtype, const Shape& shape, uint64_t shift) { return planTensor(dtype, shape, shift); });
}

}  // namespace

TEST(KVCacheWriteRules, TheSoundWriteIsSound) {
  EXPECT_EQ(REQUIRE(plan(soundOp())).dispatches.size(), 1u);
}

TEST(KVCacheWriteRules, EveryRuleHasACaseThatBreaksIt) {
  expectEveryRuleIsBroken<Op>(kvCacheWriteRules(), kBroken);
}

TEST(KVCacheWriteRules, EachErrorSaysWhatGotExpectedAndFix) {
  for (const BrokenRule<Op>& broken : kBroken) {
    Op op = soundOp();
    broken.breakIn(op);
    expectBroken<Op>(kvCacheWriteRules(), op, broken, "KVCacheWrite");
    EXPECT_ERROR(plan(op), {.op = "KVCacheWrite", .what = broken.what, .got = broken.got});
  }
}

TEST(KVCacheWriteRules, ARefusedWriteEncodesNothingAndChangesNothing) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    for (const BrokenRule<Op>& broken : kBroken) {
      const Context context(fmt::format("{} (got {})", broken.what, broken.got));
      const KVCacheWriteRun opRun(device, kSound, random);
      Op op = opRun.op();
      broken.breakIn(op);
      CommandEncoder encoder(device);
      EXPECT_ERROR(encoder.encode(op), {.op = "KVCacheWrite", .what = broken.what});
      EXPECT_EQ(encoder.summary().total.dispatches, 0u);
      EXPECT_EQ(encoder.summary().barriers, 0u);
      EXPECT_EQ(REQUIRE(REQUIRE(encoder.commit()).wait()).total.dispatches, 0u);
      opRun.expectUntouched();
    }
  });
}

// The encoder stays usable after a refusal.
TEST(KVCacheWriteRules, ASoundWriteFollowsARefusedOne) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random;
    const KVCacheWriteRun opRun(device, kSound, random);
    CommandEncoder encoder(device);
    Op tooFar = opRun.op();
    tooFar.position = 4;
    EXPECT_ERROR(encoder.encode(tooFar), {.what = "the write runs past the end of a linear cache"});
    REQUIRE(encoder.encode(opRun.op()));
    EXPECT_EQ(encoder.summary().total.dispatches, 1u);
    REQUIRE(REQUIRE(encoder.commit()).wait());
    opRun.expectWritten();
  });
}

TEST(KVCacheWriteRules, RowsTakeThePlaceOfSequenceAndPosition) {
  Op op = soundOp();
  setRows(op, List{0, 1, 0}, List{0, 1, 2});
  op.sequence = 99;
  op.position = UINT64_MAX;
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

// The value cache may be anywhere, and anything, while only keys are written.
TEST(KVCacheWriteRules, KeysAloneDoNotLookAtTheValueCache) {
  Op op = soundOp();
  op.values.reset();
  op.into.values = planTensor(DType::u8, {3});
  EXPECT_EQ(REQUIRE(plan(op)).dispatches.size(), 1u);
}

}  // namespace mnk::test
