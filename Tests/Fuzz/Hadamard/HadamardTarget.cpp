#include "HadamardTarget.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "Harness/SoftFloat.hpp"
#include "Numbers.hpp"
#include "OpCase.hpp"
#include "Ops/Common/KVCodecReference.hpp"
#include "Ops/Common/KVCodecTables.hpp"
#include "Ops/Hadamard/HadamardRules.hpp"
#include "TensorMutations.hpp"

namespace mnk::fuzz {

namespace {

// A Hadamard in numbers.
struct Spec {
  bool isNull = false;
  std::optional<TensorSpec> from, into;
  mnk_hadamard numbers{};  // everything but the tensors
  uint8_t tail = 0;

  uint64_t length() const { return from->shape.empty() ? 0 : from->shape.back(); }
};

bool isFloat(const TensorSpec& tensor) {
  return tensor.dtype == MNK_F32 || tensor.dtype == MNK_F16 || tensor.dtype == MNK_BF16;
}

Spec valid(Seeded& random, Bank bank) {
  const auto real = [&] { return oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}); };
  for (;;) {
    Spec spec;
    mnk_hadamard& n = spec.numbers;
    n.size = sizeof n + (coin(random, 1, 16) ? random.below(sizeof n + 1) : 0);
    n.has_signs = coin(random, 2, 3);
    n.signs = coin(random, 1, 2) ? MNK_TURBO : MNK_MLX1;
    n.is_inverse = coin(random, 1, 2);
    const bool isTurbo = n.has_signs && n.signs == MNK_TURBO;
    uint64_t length =
        isTurbo ? uint64_t{32} << random.below(5) : uint64_t{4} << random.below(coin(random, 1, 8) ? 11 : 7);
    if ((isTurbo || !n.has_signs) && coin(random, 1, 3)) length = oneOf<uint64_t>(random, {80, 96, 112, 192});
    std::vector<uint64_t> shape;
    for (uint64_t axes = random.below(4); axes > 0; --axes)
      shape.push_back(random.below(16) == 0 ? 0 : 1 + random.below(4));
    shape.push_back(length);
    // Results of the first call are not what the second one reads.
    const uint32_t region = bank == Bank::first ? 0 : 2;
    spec.from = TensorSpec{.dtype = real(), .shape = shape, .region = region};
    if (coin(random, 1, 2)) spec.into = TensorSpec{.dtype = real(), .shape = shape, .region = region + 1};
    bool isPlaced = place(*spec.from, random);
    if (spec.into) isPlaced = place(*spec.into, random) && isPlaced;
    if (spec.into && coin(random, 1, 8)) spec.into = spec.from;
    if (isPlaced) return spec;
  }
}

void mutate(Spec& spec, Seeded& random) {
  if (!spec.from) return;
  TensorSpec& tensor = spec.into && coin(random, 1, 2) ? *spec.into : *spec.from;
  mnk_hadamard& n = spec.numbers;
  switch (random.below(13)) {
    case 0:
      spec.isNull = true;
      return;
    case 1:
      spec.from.reset();
      return;
    case 2:
      n.size = edge(random, {sizeof n, sizeof n, sizeof n + 8, 2 * sizeof n});
      spec.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
      return;
    case 3:
      n.has_signs = coin(random, 3, 4);
      n.signs = test::number<mnk_kv_codec_name>(static_cast<uint32_t>(random.below(4)));
      return;
    case 4:
      return changeTheRank(tensor, random);
    case 5:
      return changeTheDType(tensor, random);
    case 6:
      return moveAnExtent(tensor, random);
    case 7:
      if (!tensor.shape.empty()) tensor.shape.back() = oneOf<uint64_t>(random, {2, 4, 48, 96, 1024, 4096, 8192});
      return;
    case 8:
      if (spec.into) spec.into->shape = spec.from->shape;
      return;
    case 9:
      // So many that no memory could hold them but for an axis of 0.
      spec.from->shape = {uint64_t{1} << 31, 0, 64};
      if (spec.into) spec.into->shape = spec.from->shape;
      return;
    case 10:
      tensor.device = 1;
      return;
    default:
      if (spec.into) moveBeside(*spec.into, *spec.from, random);
  }
}

// Whether results take the place of what they are made of, with or without saying so.
bool isInPlace(const Spec& spec) {
  return !spec.into || (spec.into->dtype == spec.from->dtype && spec.into->region == spec.from->region &&
                        spec.into->offset == spec.from->offset);
}

// The contract of Hadamard.hpp and mnk_kv_quantize.h: what the error must say, or nothing.
std::string refusalOf(const Spec& spec) {
  const mnk_hadamard& n = spec.numbers;
  if (spec.isNull) return "mnk_hadamard is missing";
  if (n.size < sizeof n || n.size > 2 * sizeof n || (n.size > sizeof n && spec.tail != 0)) {
    return "mnk_hadamard has the wrong size";
  }
  if (!spec.from) return "from is missing";
  if (n.has_signs && static_cast<uint32_t>(n.signs) > 1) return "the number is not a codec";
  if (!isFloat(*spec.from) || (spec.into && !isFloat(*spec.into))) return "the tensors are not of floats";
  const uint64_t length = spec.length();
  const bool hasBlocks = length == 80 || length == 96 || length == 112 || length == 192;
  const bool isLength = (std::has_single_bit(length) && length >= 4 && length <= 4096) ||
                        (hasBlocks && !(n.has_signs && n.signs == MNK_MLX1));
  if (!isLength) return "vectors have no length that can be turned";
  if (n.has_signs && n.signs == MNK_TURBO && (length < 32 || length > 512)) {
    return "the codec has no signs for this length";
  }
  if (!spec.into) return {};
  if (spec.into->shape != spec.from->shape) return "the target has another shape";
  const bool isPartial = !isInPlace(spec) && spec.into->overlaps(*spec.from);
  return isPartial ? "source and target overlap without being the same" : "";
}

class HadamardCall final : public OpCall {
 public:
  HadamardCall(Arena& arena, Seeded& random, Spec spec) : spec_(std::move(spec)) {
    std::memset(storage_.tail, spec_.tail, sizeof storage_.tail);
    storage_.op = spec_.numbers;
    storage_.op.from = spec_.from ? arena.make(*spec_.from, random) : nullptr;
    storage_.op.into = spec_.into ? arena.make(*spec_.into, random) : nullptr;
    if (spec_.from && isFloat(*spec_.from)) fill(arena, random, *spec_.from);
    refusal_ = refusalOf(spec_);
  }

  std::string text() const override {
    const mnk_hadamard& n = spec_.numbers;
    if (spec_.isNull) return "Hadamard: a NULL descriptor";
    return fmt::format("Hadamard (size {}, tail {}): from {}, into {}, signs {}{}", n.size, spec_.tail,
                       spec_.from ? spec_.from->text() : "NULL", spec_.into ? spec_.into->text() : "NULL",
                       n.has_signs ? fmt::format("{}", static_cast<uint32_t>(n.signs)) : "none",
                       n.is_inverse ? ", inverse" : "");
  }
  std::string refusal() const override { return refusal_; }
  bool isEmpty() const override { return spec_.from->elements() == 0; }
  bool isForeign() const override {
    // What stays in place is read where it is written.
    const bool isRead = !spec_.into || !isInPlace(spec_);
    return (isRead && spec_.from->device != 0) || (spec_.into && spec_.into->device != 0);
  }
  mnk_plan* makePlan(mnk_error_out error) const override { return mnk_hadamard_make_plan(descriptor(), error); }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_hadamard(encoder, descriptor(), error);
  }

  uint64_t apply(Arena& arena) const override {
    if (isEmpty()) return 0;
    const TensorSpec& into = spec_.into ? *spec_.into : *spec_.from;
    const auto dtype = static_cast<DType>(into.dtype);
    std::vector<uint64_t> bits;
    std::vector<double> values, slack;
    const std::vector<double> source = elementsOf(arena, *spec_.from);
    for (uint64_t begin = 0; begin < source.size(); begin += spec_.length()) {
      const std::vector<double> turned = turnedVector(std::span(source).subspan(begin, spec_.length()));
      double squares = 0;
      for (const double element : turned) squares += element * element;
      for (const double element : turned) {
        values.push_back(element);
        slack.push_back(std::sqrt(squares) * 4e-6);
        bits.push_back(test::nearestBits(dtype, element));
      }
    }
    const auto image = arena.image(into);
    for (uint64_t e = 0; e < bits.size(); ++e)
      std::memcpy(&image[e * into.elementBytes()], &bits[e], into.elementBytes());
    arena.allow(into, [=](uint64_t element, uint64_t expected, uint64_t got) {
      if (bits[element] != expected) return false;  // a later call has overwritten it
      const double digit = dtype == DType::f32 ? 0x1p-22 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
      return std::abs(test::valueOf(dtype, got) - values[element]) <=
             slack[element] + digit * std::abs(values[element]) + (dtype == DType::f16 ? 0x1p-24 : 0x1p-126);
    });
    return into.bytes();
  }

 private:
  const mnk_hadamard* descriptor() const { return spec_.isNull ? nullptr : &storage_.op; }

  static void fill(Arena& arena, Seeded& random, const TensorSpec& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    for (uint64_t e = 0; e < tensor.elements(); ++e) {
      const uint64_t bits =
          test::nearestBits(static_cast<DType>(tensor.dtype), static_cast<double>(random.below(513)) / 64 - 4);
      std::memcpy(&bytes[e * tensor.elementBytes()], &bits, tensor.elementBytes());
    }
    arena.fill(tensor, bytes);
  }

  static std::vector<double> elementsOf(Arena& arena, const TensorSpec& tensor) {
    std::vector<double> values(tensor.elements());
    for (uint64_t e = 0; e < values.size(); ++e) {
      uint64_t bits = 0;
      std::memcpy(&bits, &arena.image(tensor)[e * tensor.elementBytes()], tensor.elementBytes());
      values[e] = test::valueOf(static_cast<DType>(tensor.dtype), bits);
    }
    return values;
  }

  std::vector<double> turnedVector(std::span<const double> vector) const {
    std::vector<double> x(vector.begin(), vector.end());
    std::vector<double> s(x.size(), 1);
    if (spec_.numbers.has_signs) s = test::signsOf(static_cast<KVCodecName>(spec_.numbers.signs), x.size());
    const double root = std::sqrt(static_cast<double>(x.size()));
    for (uint64_t e = 0; e < x.size(); ++e) x[e] *= spec_.numbers.is_inverse ? 1 : s[e];
    std::vector<double> y = test::hadamard(x);
    for (uint64_t e = 0; e < y.size(); ++e) y[e] *= (spec_.numbers.is_inverse ? s[e] : 1) / root;
    return y;
  }

  Spec spec_;
  std::string refusal_;
  struct {
    mnk_hadamard op;
    unsigned char tail[sizeof(mnk_hadamard)];
  } storage_;
};

std::unique_ptr<OpCall> makeCall(Arena& arena, Seeded& random, Wish wish, Bank bank) {
  Spec spec = valid(random, bank);
  if (wish == Wish::anything) {
    for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) mutate(spec, random);
    if (spec.from) makePossible(*spec.from, random);
    if (spec.into) makePossible(*spec.into, random);
  }
  return std::make_unique<HadamardCall>(arena, random, std::move(spec));
}

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return makeOpCase(arena, random, makeCall);
}

}  // namespace

Target hadamardTarget() {
  std::vector<std::string_view> refusals = encoderRefusals();
  for (const auto& rule : hadamardRules()) {
    // A handle always has memory, and so many vectors have more of it than there is.
    if (rule.what != "a tensor has no memory" && rule.what != "there are too many vectors")
      refusals.push_back(rule.what);
  }
  refusals.insert(refusals.end(), {"mnk_hadamard is missing", "mnk_hadamard has the wrong size", "from is missing",
                                   "the number is not a codec"});
  return {.name = "Hadamard", .share = 40, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
