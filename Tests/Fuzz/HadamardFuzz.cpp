#include "Harness/SoftFloat.hpp"
#include "OpFuzz.hpp"
#include "Ops/Common/StoredVector.hpp"
#include "Ops/Hadamard/Hadamard.hpp"
#include "Ops/Hadamard/HadamardRun.hpp"

namespace mnk::fuzz {

namespace {

struct HadamardFuzz {
  using Op = Hadamard;
  static constexpr bool kTakesAnyBits = false;

  static Op make(Arena& arena, Seeded& random) {
    const auto real = [&] { return oneOf(random, {DType::f32, DType::f16, DType::bf16}); };
    Op op{.isInverse = coin(random, 1, 2)};
    if (coin(random, 2, 3)) op.signs = coin(random, 1, 2) ? KVCodec::Name::turbo : KVCodec::Name::mlx1;
    const bool isTurbo = op.signs == KVCodec::Name::turbo;
    uint64_t length =
        isTurbo ? uint64_t{32} << random.below(5) : uint64_t{4} << random.below(coin(random, 1, 8) ? 11 : 7);
    if (op.signs != KVCodec::Name::mlx1 && coin(random, 1, 3)) length = oneOf<uint64_t>(random, {80, 96, 112, 192});
    std::vector<uint64_t> extents;
    for (uint64_t axes = random.below(4); axes > 0; --axes) {
      extents.push_back(coin(random, 1, 16) ? 0 : 1 + random.below(4));
    }
    extents.push_back(length);
    const Shape shape = *Shape::make(extents);
    op.from = arena.place(real(), shape, random);
    if (coin(random, 1, 2)) op.into = coin(random, 1, 4) ? op.from : arena.place(real(), shape, random);
    return op;
  }

  static void fill(const Op& op, Arena& arena, Seeded& random, bool) {
    std::vector<std::byte> bytes;
    for (const float number : test::normalVector(random, op.from.shape().elementCount())) {
      const uint64_t bits = test::nearestBits(op.from.dtype(), static_cast<double>(number));
      const auto* begin = reinterpret_cast<const std::byte*>(&bits);
      bytes.insert(bytes.end(), begin, begin + byteSize(op.from.dtype()));
    }
    arena.write(op.from, bytes);
  }

  static std::vector<Tensor> outputs(const Op& op) { return {op.into ? *op.into : op.from}; }

  static uint64_t expect(const Op& op, const Arena& arena) {
    test::expectTurned(op, arena.memory());
    return outputs(op)[0].byteCount();
  }
};

}  // namespace

Target hadamardTarget() {
  auto refusals = refusalsOf({"op is missing", "from is missing", "the number is not a case of mnk_kv_codec_name"},
                             hadamardRules());
  std::erase(refusals, "there are too many vectors");  // which have more memory than there is
  return {.name = "Hadamard", .share = 40, .refusals = std::move(refusals), .make = makeOpCase<HadamardFuzz>};
}

}  // namespace mnk::fuzz
