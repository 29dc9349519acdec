
#include <fmt/ranges.h>

#include <algorithm>

#include "Target.hpp"

namespace mnk::fuzz {

namespace {

using test::Owned;
using Wide = unsigned __int128;

constexpr uint64_t kMostElements = UINT64_MAX / 8;

constexpr std::string_view kNoShape = "shape is missing";
constexpr std::string_view kNoDevice = "device is missing";
constexpr std::string_view kNoTensor = "tensor is missing";
constexpr std::string_view kNoTarget = "into is missing";
constexpr std::string_view kNotADType = "the number is not a case of mnk_dtype";
constexpr std::string_view kRank = "the shape has too many extents";
constexpr std::string_view kCount = "the shape holds more elements than 64-bit sizes can count";
constexpr std::string_view kNotWrapped = "memory cannot be wrapped";
constexpr std::string_view kOutside = "the tensor does not fit in its buffer";
constexpr std::string_view kUnaligned = "the tensor does not start at a multiple of its element size";
constexpr std::string_view kSlice = "the slice lies outside the tensor";
constexpr std::string_view kReshape = "the new shape holds another number of elements";
constexpr std::string_view kCopy = "the copy does not cover the tensor exactly";

struct ShapeSpec {
  std::vector<uint64_t> extents;
  bool isNull = false;

  // The elements; a shape that is refused has none.
  uint64_t elements() const {
    uint64_t count = 1;
    for (const uint64_t extent : extents) count *= extent;
    return count;
  }
  std::string_view refusal() const {
    if (isNull && !extents.empty()) return kNoShape;
    if (extents.size() > 8) return kRank;
    Wide product = 1;
    for (const uint64_t extent : extents) {
      product *= extent == 0 ? 1 : extent;
      if (product > kMostElements) return kCount;
    }
    return {};
  }
  std::string text() const { return isNull ? "NULL" : fmt::format("[{}]", fmt::join(extents, ", ")); }
};

ShapeSpec drawShape(Seeded& random) {
  ShapeSpec shape;
  for (uint64_t rank = random.below(coin(random, 1, 20) ? 12 : 5); rank > 0; --rank) {
    shape.extents.push_back(coin(random, 15, 16) ? random.below(7) : edge(random, {1u << 16, uint64_t{1} << 61}));
  }
  shape.isNull = coin(random, 1, 40);
  return shape;
}

// Wraps a region, then slices, reshapes and reads: each call must do what plain arithmetic says, until one is refused.
class TensorCase final : public Case {
 public:
  TensorCase(Arena&, Seeded& random)
      : memory_(Arena::kRegionBytes),
        dtype_(static_cast<uint32_t>(coin(random, 1, 20) ? edge(random, {7, 255}) : random.below(7))),
        shape_(drawShape(random)),
        bytes_(coin(random, 7, 8) ? Arena::kRegionBytes : random.below(Arena::kRegionBytes)),
        offset_(coin(random, 1, 2) ? 0 : (coin(random, 7, 8) ? random.below(64) * 4 : edge(random, {bytes_, 2}))),
        copied_(coin(random, 1, 4) ? edge(random, {64, 256}) : UINT64_MAX),
        absent_(static_cast<Absent>(random.below(64))) {
    drawViews(random);
    // What does not fit is at most twice as long as the region, or too long to be claimed: nothing else is mapped.
    if (coin(random, 1, 40)) bytes_ = (uint64_t{1} << 62) + random.below(UINT64_MAX >> 1);
  }

  std::string text() const override {
    return fmt::format("Tensor: dtype {}, shape {} at byte {} of {}; slice {} + {}; reshaped {}; copy of {}{}", dtype_,
                       shape_.text(), offset_, bytes_, begin_, count_, reshaped_.text(), copied_,
                       absent_ <= Absent::target ? fmt::format("; missing handle {}", static_cast<int>(absent_)) : "");
  }

  Verdict run(Arena& arena) override {
    released_ = 0;
    Verdict verdict = runCalls(arena);
    if (verdict.failure.empty() && released_ != 1) {
      verdict.failure = fmt::format("the memory was released {} times", released_);
    }
    return verdict;
  }

 private:
  enum class Absent { memory, device, tensor, target };

  // Mostly a slice that is there and a shape that holds it.
  void drawViews(Seeded& random) {
    const uint64_t outermost = shape_.extents.empty() ? 1 : shape_.extents[0];
    begin_ = coin(random, 7, 8) ? random.below(outermost + 1) : edge(random, {outermost, UINT64_MAX - outermost});
    count_ = coin(random, 7, 8) ? random.below(outermost - std::min(begin_, outermost) + 1) : edge(random, {outermost});
    uint64_t elements = count_;
    for (size_t axis = 1; axis < shape_.extents.size(); ++axis) elements *= shape_.extents[axis];
    reshaped_ = coin(random, 1, 4) ? drawShape(random) : ShapeSpec{{elements, 1}};
    if (coin(random, 1, 8) && !reshaped_.extents.empty()) reshaped_.extents[0] += 1;
  }

  std::string_view wrapRefusal() const {
    if (absent_ == Absent::device) return kNoDevice;
    if (absent_ == Absent::memory || bytes_ > Arena::kRegionBytes) return kNotWrapped;
    if (dtype_ > MNK_I32) return kNotADType;
    if (const auto refusal = shape_.refusal(); !refusal.empty()) return refusal;
    const uint64_t size = byteSize(static_cast<DType>(dtype_));
    if (Wide{offset_} + Wide{shape_.elements()} * size > bytes_) return kOutside;
    return offset_ % size != 0 ? kUnaligned : "";
  }

  Verdict runCalls(Arena& arena) {
    test::Caught caught;
    const auto release = [](void* count) { *static_cast<int*>(count) += 1; };
    const Owned<mnk_tensor> whole(
        mnk_tensor_make_wrapping(absent_ == Absent::device ? nullptr : arena.device(0),
                                 absent_ == Absent::memory ? nullptr : memory_.data(), bytes_,
                                 test::number<mnk_dtype>(dtype_), shape_.isNull ? nullptr : shape_.extents.data(),
                                 shape_.extents.size(), offset_, release, &released_, caught.out()),
        mnk_tensor_release);
    Verdict verdict = checkResult(caught, bool(whole), wrapRefusal());
    if (!whole || !verdict.failure.empty()) return verdict;

    const mnk_tensor* given = absent_ == Absent::tensor ? nullptr : whole.get();
    const bool isSlice = !shape_.extents.empty() && Wide{begin_} + count_ <= shape_.extents[0];
    const Owned<mnk_tensor> slice(mnk_tensor_make_slice(given, begin_, count_, caught.out()), mnk_tensor_release);
    verdict = checkResult(caught, bool(slice), !given ? kNoTensor : (isSlice ? "" : kSlice));
    if (!slice || !verdict.failure.empty()) return verdict;

    const uint64_t size = byteSize(static_cast<DType>(dtype_));
    uint64_t entry = 1;
    for (size_t axis = 1; axis < shape_.extents.size(); ++axis) entry *= shape_.extents[axis];
    const uint64_t bytes = count_ * entry * size, offset = offset_ + begin_ * entry * size;
    if (mnk_tensor_byte_count(slice.get()) != bytes || mnk_tensor_byte_offset(slice.get()) != offset) {
      verdict.failure =
          fmt::format("the slice has {} bytes at {}, expected {} at {}", mnk_tensor_byte_count(slice.get()),
                      mnk_tensor_byte_offset(slice.get()), bytes, offset);
      return verdict;
    }
    verdict = reshape(slice.get(), count_ * entry, caught);
    return verdict.refusal.empty() && verdict.failure.empty() ? copy(slice.get(), bytes, offset, caught) : verdict;
  }

  Verdict reshape(const mnk_tensor* slice, uint64_t elements, test::Caught& caught) {
    std::string_view expected = reshaped_.refusal();
    if (expected.empty() && reshaped_.elements() != elements) expected = kReshape;
    const Owned<mnk_tensor> again(mnk_tensor_make_reshaped(slice, reshaped_.isNull ? nullptr : reshaped_.extents.data(),
                                                           reshaped_.extents.size(), caught.out()),
                                  mnk_tensor_release);
    return checkResult(caught, bool(again), expected);
  }

  Verdict copy(const mnk_tensor* slice, uint64_t bytes, uint64_t offset, test::Caught& caught) {
    for (size_t byte = 0; byte < memory_.size(); ++byte) memory_[byte] = static_cast<std::byte>(byte * 7);
    std::vector<std::byte> into(Arena::kRegionBytes + 1, std::byte{0x5a});
    const uint64_t asked = copied_ == UINT64_MAX ? bytes : copied_;
    const bool isAbsent = absent_ == Absent::target && asked != 0;
    const bool isRead = mnk_tensor_read(slice, isAbsent ? nullptr : into.data(), asked, caught.out());
    Verdict verdict = checkResult(caught, isRead, isAbsent ? kNoTarget : (asked == bytes ? "" : kCopy));
    const uint64_t copied = isRead ? bytes : 0;
    for (uint64_t byte = 0; byte < into.size() && verdict.failure.empty(); ++byte) {
      const std::byte expected = byte < copied ? memory_[offset + byte] : std::byte{0x5a};
      if (into[byte] != expected) verdict.failure = fmt::format("byte {} of a copy is wrong", byte);
    }
    return verdict;
  }

  std::vector<std::byte> memory_;
  uint32_t dtype_;
  ShapeSpec shape_;
  uint64_t bytes_, offset_, begin_ = 0, count_ = 0;
  ShapeSpec reshaped_;
  uint64_t copied_;  // UINT64_MAX: as many as there are
  Absent absent_;
  int released_ = 0;
};

std::unique_ptr<Case> makeCase(Arena& arena, Seeded& random) {
  return std::make_unique<TensorCase>(arena, random);
}

}  // namespace

Target tensorTarget() {
  return {.name = "Tensor",
          .share = 120,
          .refusals = {kNoShape, kNoDevice, kNoTensor, kNoTarget, kNotADType, kRank, kCount, kNotWrapped, kOutside,
                       kUnaligned, kSlice, kReshape, kCopy},
          .make = makeCase};
}

}  // namespace mnk::fuzz
