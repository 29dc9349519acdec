// Where cases happen: devices, and regions of memory that tensors of the cases lie in. Beside every region lies its
// image, the bytes that must be there: everything around a tensor is its guard.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "CAPI/CApiHarness.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/Tensor.hpp"
#include "Ops/Common/OperandMemory.hpp"

namespace mnk::fuzz {

// A tensor in numbers: enough to make it, and to reason about it without the code under test.
struct TensorSpec {
  uint32_t device = 0;  // 1: not the one at home
  mnk_dtype dtype = MNK_F32;
  std::vector<uint64_t> shape = {};
  uint32_t region = 0;
  uint64_t offset = 0;  // in the region, in bytes

  uint64_t elementBytes() const { return byteSize(static_cast<DType>(dtype)); }
  uint64_t elements() const { return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>()); }
  uint64_t bytes() const { return elements() * elementBytes(); }
  std::string text() const;
};

using test::coin, test::edge, test::oneOf;

class Arena {
 public:
  static constexpr uint32_t kRegions = 19;
  static constexpr uint64_t kRegionBytes = 8192;
  // Devices: one that checks nothing, one that guards memory and has a GPU's kernels, and one that checks all accesses.
  static constexpr uint32_t kPlain = 0, kGuarded = 1, kWatched = 2;

  // The arena of `cases` cases; failures to make it are thrown.
  Arena(uint64_t seed, size_t cases);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Releases what the last case made, puts every byte back and draws which device is at home. `index` counts the
  // cases of this arena.
  void begin(size_t index, test::Seeded& random);
  // 0 is the one at home, which encodes; 1 is the other one.
  mnk_device* device(uint32_t index) const;
  // Whether every load and store of the device at home is checked.
  bool isWatched() const { return home_ == kWatched; }
  // Whether the device of the case has the kernels of a GPU, some of which compute with halves.
  bool hasGPUKernels() const { return home_ == kGuarded; }
  // The one that runs in plain order and watches nothing.
  mnk_device* plainDevice() { return devices_[0].get(); }

  // A tensor of this case, made in one of the ways that the C API offers; all mean the same.
  mnk_tensor* make(const TensorSpec& spec, test::Seeded& random);
  void fill(const TensorSpec& spec, std::span<const std::byte> bytes);

  // A tensor of an op, anywhere in the next region that has none; its address is a multiple of this. Throws DoesNotFit.
  struct DoesNotFit {};
  Tensor place(DType dtype, const Shape& shape, test::Seeded& random, uint64_t alignment = 1);
  uint32_t freeRegion() { return nextRegion_ < kRegions ? nextRegion_++ : kRegions - 1; }
  // Takes back all tensors of this case.
  void restart();
  TensorSpec specOf(const Tensor& tensor) const;
  // Bytes of a tensor: as the image has them, and as they are.
  std::vector<std::byte> before(const Tensor& tensor) const;
  std::vector<std::byte> now(const Tensor& tensor) const {
    const std::byte* begin = tensor.buffer()->contents() + tensor.byteOffset();
    return {begin, begin + tensor.byteCount()};
  }
  test::OperandMemory memory() const {
    return {[this](const Tensor& tensor) { return before(tensor); },
            [this](const Tensor& tensor) { return now(tensor); }};
  }
  void write(const Tensor& tensor, std::span<const std::byte> bytes) { fill(specOf(tensor), bytes); }
  // Memory is as the images say, and the images are what memory was.
  void swapImages() {
    for (Region& region : regions_) std::swap_ranges(region.image.begin(), region.image.end(), region.memory.get());
  }

  // From here on the case changes memory only as its images say.
  void remember() {
    for (Region& region : regions_) std::memcpy(region.image.data(), region.memory.get(), kRegionBytes);
  }
  std::span<std::byte> image(const TensorSpec& spec) {
    return std::span(regions_[spec.region].image).subspan(spec.offset, spec.bytes());
  }
  // Elements that have more than one right value: whether `got` may stand where the image holds `expected`. An element
  // that a later call has overwritten has another image.
  using IsRight = std::function<bool(uint64_t element, uint64_t expected, uint64_t got)>;
  void allow(const TensorSpec& spec, IsRight isRight) { allowances_.push_back({spec, std::move(isRight)}); }
  // The first byte that is not as its image says, in words; empty where there is none.
  std::string difference();
  // The same, outside of tensors.
  std::string differenceOutside(const std::vector<Tensor>& tensors);

  // Cases whose memory was not released exactly once, to be asked for when all are done.
  std::vector<size_t> casesThatLeak();

 private:
  struct Region {
    std::unique_ptr<std::byte, void (*)(void*)> memory{nullptr, nullptr};
    std::vector<std::byte> image;
  };
  struct Allowance {
    TensorSpec spec;
    IsRight isRight;
  };
  mnk_tensor* wrap(const TensorSpec& spec, uint64_t begin, uint64_t bytes, const std::vector<uint64_t>& shape);
  std::string valuesAt(uint32_t region, uint64_t byte) const;

  std::vector<test::Owned<mnk_device>> devices_;
  std::array<Region, kRegions> regions_;
  std::vector<std::byte> pattern_;
  std::vector<test::Owned<mnk_tensor>> tensors_;
  std::vector<Allowance> allowances_;
  std::vector<std::atomic<int32_t>> alive_;  // wrapped memory of each case that is still in use
  size_t index_ = 0;
  uint32_t home_ = 0;
  uint32_t nextRegion_ = 0;
};

// Somewhere in its region, often at one of its ends. False where it does not fit.
bool place(TensorSpec& spec, test::Seeded& random);
// Makes extents that no memory here could hold harmless, by giving the tensor no elements, and places it if it has to
// move. What was done to the shape stays, as far as the C API would make such a tensor.
void makePossible(TensorSpec& spec, test::Seeded& random);

}  // namespace mnk::fuzz
