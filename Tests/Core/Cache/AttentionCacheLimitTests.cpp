// Sequences near the last position that kernels support: 2^31 - 1.
#include "CacheFileFixture.hpp"
#include "Harness/EveryDevice.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kLimit = (uint64_t{1} << 31) - 1;
constexpr size_t kNextOffset = 88, kHighestOffset = 96;  // offsets of the first sequence's positions in a file

AttentionCacheDescriptor ring() {
  return {.kvHeads = 1, .headDim = 32, .capacity = 4, .sequences = 2, .dtype = DType::f32, .whenFull = KVWrap::ring};
}

// The cache with its first sequence, whose ring has wrapped, moved to another position.
AttentionCache movedTo(const std::shared_ptr<Device>& device, const AttentionCache& cache, uint64_t position) {
  const CacheFolder folder;
  REQUIRE(cache.save(folder.path()));
  std::vector<std::byte> file = readFile(folder.path());
  forge(file, kNextOffset, position);
  forge(file, kHighestOffset, position);
  writeFile(folder.path(), file);
  return REQUIRE(AttentionCache::load(device, folder.path(), kPlenty));
}

}  // namespace

TEST(AttentionCacheLimit, AttendsUpToTheLastPosition) {
  onEveryDevice([where = std::source_location::current()](const std::shared_ptr<Device>& device) {
    Seeded random(5);
    AttentionCache near = makeCache(device, ring());
    appendAlike(device, random, {near}, 8);
    AttentionCache far = movedTo(device, near, kLimit + 1 - 8);  // in the same slots
    appendAlike(device, random, {near, far}, 7);
    EXPECT_EQ(*far.nextPosition(0), kLimit);

    const Tensor queries = someTokens(device, random, 1, 1, 32), token = someTokens(device, random, 1, 1, 32);
    const Tensor slopes = constants(device, 0.25f, 1, 1);
    const auto attend = [&](const AttentionCache& cache, uint32_t window) {
      const Tensor into = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1, 1, 32}))));
      AttentionOptions options{.window = window};
      options.slopes = REQUIRE(slopes.reshaped(REQUIRE(Shape::make({1}))));
      CommandEncoder encoder(device);
      REQUIRE(cache.attend(encoder, queries, {.output = into}, options, 0));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      return bytesOf(into);
    };
    for (const uint32_t window : {0u, 3u}) EXPECT(attend(far, window) == attend(near, window));

    const Tensor into = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1, 1, 32}))));
    CommandEncoder encoder(device);
    RefusedCalls no(where);
    no(far.append(encoder, token, token, 0));
    const Tensor two = someTokens(device, random, 2, 1, 32);
    no(far.append(encoder, {.keys = two, .values = two, .sequences = {1, 0}}));
    no(far.appendAndAttend(
        encoder, {.queries = queries, .keys = token, .values = token, .results = {.output = into}, .sequences = {0}}));
    REQUIRE(REQUIRE(encoder.commit()).wait());
    EXPECT_EQ(*far.nextPosition(0), kLimit);
    EXPECT(attend(far, 0) == attend(near, 0));
    far.reset();
    appendAlike(device, random, {far}, 1);
  });
}

// A file may hold a longer sequence; attention reports it.
TEST(AttentionCacheLimit, RefusesAttentionToALongerSequence) {
  const auto device = REQUIRE(Device::makeDefault());
  Seeded random(5);
  AttentionCache cache = makeCache(device, ring());
  appendAlike(device, random, {cache}, 8);
  const AttentionCache far = movedTo(device, cache, kLimit + 1);
  const Tensor into = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({1, 1, 32}))));
  CommandEncoder encoder(device);
  RefusedCalls no;
  no(far.attend(encoder, someTokens(device, random, 1, 1, 32), {.output = into}, {}, 0));
}

}  // namespace mnk::test
