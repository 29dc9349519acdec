#include "Arena.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "CAPI/Handles.hpp"
#include "Harness/SoftFloat.hpp"
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::fuzz {

namespace {

constexpr uint64_t kHomes = 8;                // one in this many is watched if possible, and a quarter is guarded
constexpr const char* kGPUFamily = "apple9";  // of the guarded device, which then has the kernels of a GPU

// The bits of an element in a region's memory, or in its image.
uint64_t bitsIn(const std::byte* region, const TensorSpec& spec, uint64_t element) {
  uint64_t bits = 0;
  const uint64_t size = spec.elementBytes();
  std::memcpy(&bits, region + spec.offset + element * size, size);
  return bits;
}

mnk_host_options optionsOf(uint32_t index, uint64_t seed) {
  mnk_host_options options{};
  options.workers = 1;
  if (index == Arena::kPlain) return options;
  options.order_seed = seed | 1;
  options.checking = index == Arena::kWatched ? MNK_HOST_OPTIONS_CHECKING_FULL : MNK_HOST_OPTIONS_CHECKING_GUARDED;
  options.level = MNK_HOST_OPTIONS_LEVEL_BASELINE;
  return options;
}

mnk_device* makeGPUDevice(uint64_t seed) {
  auto made = c::handleFor(host::makeDevice({.workers = 1,
                                             .orderSeed = seed | 1,
                                             .checking = HostOptions::Checking::guarded,
                                             .level = HostOptions::Level::baseline,
                                             .compiler = {},
                                             .family = kGPUFamily}));
  return made ? *made : nullptr;
}

// Full checking needs a compiler that makes code for this processor: not every system has one, and an emulated one has
// the machine's. It also takes its time where a sanitizer watches as well.
bool canWatch() {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  static const bool isPossible = [] {
    constexpr char kText[] = "kernel void probe(device uint* x [[buffer(0)]]) { x[0] = 1; }\nexport_kernel(probe)\n";
    const mnk_host_options options = optionsOf(Arena::kWatched, 1);
    test::Caught noDevice, noLibrary;
    mnk_device* device = mnk_device_make_host(&options, noDevice.out());
    mnk_library* library = device ? mnk_library_make_from_text(device, kText, "probe", noLibrary.out()) : nullptr;
    const bool made = library != nullptr;
    mnk_library_release(library);
    mnk_device_release(device);
    return made;
  }();
  return isPossible;
#endif
}

// Of the axes that are not 0: what the C API counts to tell whether a shape is one.
bool isCountable(const TensorSpec& spec) {
  uint64_t product = 1;
  for (const uint64_t extent : spec.shape) {
    if (extent != 0 && __builtin_mul_overflow(product, extent, &product)) return false;
  }
  return product <= UINT64_MAX / 8;
}

bool fits(const TensorSpec& spec) {
  return spec.offset % spec.elementBytes() == 0 && spec.offset <= Arena::kRegionBytes &&
         spec.bytes() <= Arena::kRegionBytes - spec.offset;
}

}  // namespace

std::string TensorSpec::text() const {
  return fmt::format("{} [{}] at byte {} of region {}{}", mnk_dtype_name(dtype), fmt::join(shape, ", "), offset, region,
                     device == 0 ? "" : " of another device");
}

Arena::Arena(uint64_t seed, size_t cases) : pattern_(kRegionBytes), alive_(std::max<size_t>(cases, 1)) {
  for (const uint32_t index : {kPlain, kGuarded, kWatched}) {
    if (index == kWatched && !canWatch()) break;
    const mnk_host_options options = optionsOf(index, seed);
    test::Caught caught;
    devices_.emplace_back(index == kGuarded ? makeGPUDevice(seed) : mnk_device_make_host(&options, caught.out()),
                          mnk_device_release);
    if (devices_.back()) continue;
    if (index != kWatched || mnk_error_get_code(caught.get()) != MNK_UNSUPPORTED) {
      throw std::runtime_error(fmt::format("a Host device could not be made: {}", mnk_error_message(caught.get())));
    }
    devices_.pop_back();
  }
  for (uint64_t byte = 0; byte < kRegionBytes; ++byte) pattern_[byte] = static_cast<std::byte>(byte * 151 + byte / 256);
  for (Region& region : regions_) {
    // An allocation of its own for each, so that AddressSanitizer sees their ends.
    region.memory = {static_cast<std::byte*>(std::aligned_alloc(64, kRegionBytes)), std::free};
    if (!region.memory) throw std::runtime_error("no memory for a region");
    region.image.resize(kRegionBytes);
  }
}

mnk_device* Arena::device(uint32_t index) const {
  const uint32_t other = home_ == kPlain ? kGuarded : kPlain;
  return devices_[index == 0 ? home_ : other].get();
}

void Arena::begin(size_t index, test::Seeded& random) {
  restart();
  allowances_.clear();
  index_ = index;
  const uint64_t draw = random.below(kHomes);  // the same on systems that cannot watch
  home_ = draw < kHomes / 4 ? kGuarded : kPlain;
  if (draw == kHomes - 1 && devices_.size() > kWatched) home_ = kWatched;
  for (Region& region : regions_) std::memcpy(region.memory.get(), pattern_.data(), kRegionBytes);
}

mnk_tensor* Arena::wrap(const TensorSpec& spec, uint64_t begin, uint64_t bytes, const std::vector<uint64_t>& shape) {
  std::atomic<int32_t>& alive = alive_[index_];
  alive += 1;
  const auto release = [](void* counter) { *static_cast<std::atomic<int32_t>*>(counter) -= 1; };
  test::Caught caught;
  mnk_tensor* tensor =
      mnk_tensor_make_wrapping(device(spec.device), regions_[spec.region].memory.get() + begin, bytes, spec.dtype,
                               shape.data(), shape.size(), spec.offset - begin, release, &alive, caught.out());
  if (!tensor) throw std::runtime_error(fmt::format("{}: {}", spec.text(), mnk_error_message(caught.get())));
  tensors_.emplace_back(tensor, mnk_tensor_release);
  return tensor;
}

mnk_tensor* Arena::make(const TensorSpec& spec, test::Seeded& random) {
  const uint64_t bytes = spec.bytes();
  const auto keep = [&](mnk_tensor* tensor) {
    if (!tensor) throw std::runtime_error(fmt::format("no view as {}", spec.text()));
    tensors_.emplace_back(tensor, mnk_tensor_release);
    return tensor;
  };
  switch (random.below(4)) {
    case 0:
      return wrap(spec, 0, kRegionBytes, spec.shape);
    case 1:
      return wrap(spec, spec.offset, bytes, spec.shape);
    case 2: {
      const mnk_tensor* flat = wrap(spec, 0, spec.offset + bytes, {spec.elements()});
      return keep(mnk_tensor_make_reshaped(flat, spec.shape.data(), spec.shape.size(), nullptr));
    }
    default: {
      // A slice: entries of the outermost axis lie before it and after it.
      const uint64_t entry = spec.shape.empty() || spec.shape[0] == 0 ? 0 : bytes / spec.shape[0];
      if (entry == 0) return wrap(spec, spec.offset, bytes, spec.shape);
      TensorSpec whole = spec;
      const uint64_t before = random.below(spec.offset / entry + 1);
      const uint64_t after = random.below((kRegionBytes - spec.offset - bytes) / entry + 1);
      whole.offset -= before * entry;
      whole.shape[0] += before + after;
      const mnk_tensor* tensor = wrap(whole, 0, kRegionBytes, whole.shape);
      return keep(mnk_tensor_make_slice(tensor, before, spec.shape[0], nullptr));
    }
  }
}

void Arena::fill(const TensorSpec& spec, std::span<const std::byte> bytes) {
  const uint64_t count = std::min<uint64_t>(spec.bytes(), bytes.size());
  if (count != 0) std::memcpy(regions_[spec.region].memory.get() + spec.offset, bytes.data(), count);
}

void Arena::restart() {
  tensors_.clear();
  nextRegion_ = 0;
}

Tensor Arena::place(DType dtype, const Shape& shape, test::Seeded& random, uint64_t alignment) {
  const auto extents = shape.extents();
  TensorSpec spec{.dtype = static_cast<mnk_dtype>(dtype), .shape = {extents.begin(), extents.end()}};
  spec.region = nextRegion_++;
  if (spec.region >= kRegions || !fuzz::place(spec, random)) throw DoesNotFit{};
  spec.offset -= spec.offset % alignment;
  return make(spec, random)->tensor;
}

TensorSpec Arena::specOf(const Tensor& tensor) const {
  const auto extents = tensor.shape().extents();
  TensorSpec spec{.device = tensor.buffer()->isOf(*device(0)->device) ? 0u : 1u,
                  .dtype = static_cast<mnk_dtype>(tensor.dtype()),
                  .shape = {extents.begin(), extents.end()}};
  const std::byte* address = tensor.buffer()->contents() + tensor.byteOffset();
  // One that has no elements may lie at the end.
  const auto holds = [&](const Region& region) {
    return address >= region.memory.get() && address <= region.memory.get() + kRegionBytes;
  };
  const auto region = std::find_if(regions_.begin(), regions_.end(), holds);
  if (region == regions_.end()) throw std::runtime_error("a tensor lies outside of all regions");
  spec.region = static_cast<uint32_t>(region - regions_.begin());
  spec.offset = static_cast<uint64_t>(address - region->memory.get());
  return spec;
}

std::vector<std::byte> Arena::before(const Tensor& tensor) const {
  const TensorSpec spec = specOf(tensor);
  const std::byte* begin = regions_[spec.region].image.data() + spec.offset;
  return {begin, begin + spec.bytes()};
}

std::string Arena::differenceOutside(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    const auto bytes = now(tensor);
    std::copy(bytes.begin(), bytes.end(), image(specOf(tensor)).begin());
  }
  return difference();
}

std::string Arena::valuesAt(uint32_t region, uint64_t byte) const {
  for (auto last = allowances_.rbegin(); last != allowances_.rend(); ++last) {
    const TensorSpec& spec = last->spec;
    if (spec.region != region || byte < spec.offset || byte >= spec.offset + spec.bytes()) continue;
    const uint64_t element = (byte - spec.offset) / spec.elementBytes();
    const auto dtype = static_cast<DType>(spec.dtype);
    return fmt::format(" (element {} of {}: got {}, expected {})", element, spec.text(),
                       test::valueOf(dtype, bitsIn(regions_[spec.region].memory.get(), spec, element)),
                       test::valueOf(dtype, bitsIn(regions_[spec.region].image.data(), spec, element)));
  }
  return {};
}

std::string Arena::difference() {
  for (const auto& [spec, isRight] : allowances_) {
    Region& region = regions_[spec.region];
    for (uint64_t element = 0; element < spec.elements(); ++element) {
      const uint64_t got = bitsIn(region.memory.get(), spec, element);
      const uint64_t expected = bitsIn(region.image.data(), spec, element);
      if (got == expected || !isRight(element, expected, got)) continue;
      std::memcpy(&image(spec)[element * spec.elementBytes()], &got, spec.elementBytes());
    }
  }
  for (uint32_t index = 0; index < kRegions; ++index) {
    const Region& region = regions_[index];
    if (std::memcmp(region.memory.get(), region.image.data(), kRegionBytes) == 0) continue;
    uint64_t byte = 0;
    while (region.memory.get()[byte] == region.image[byte]) ++byte;
    return fmt::format("byte {} of region {}: got {:#04x}, expected {:#04x}{}", byte, index,
                       static_cast<unsigned>(region.memory.get()[byte]), static_cast<unsigned>(region.image[byte]),
                       valuesAt(index, byte));
  }
  return {};
}

std::vector<size_t> Arena::casesThatLeak() {
  tensors_.clear();
  devices_.clear();
  // A thread of a device may still be about to let go of the last submission; only a leak takes all of this time.
  const auto isAlive = [](const std::atomic<int32_t>& count) { return count != 0; };
  for (int tries = 0; tries < 500 && std::any_of(alive_.begin(), alive_.end(), isAlive); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::vector<size_t> cases;
  for (size_t index = 0; index < alive_.size(); ++index) {
    if (isAlive(alive_[index])) cases.push_back(index);
  }
  return cases;
}

bool place(TensorSpec& spec, test::Seeded& random) {
  const uint64_t bytes = spec.bytes();
  if (bytes > Arena::kRegionBytes) return false;
  const uint64_t most = (Arena::kRegionBytes - bytes) / spec.elementBytes();
  const uint64_t element = oneOf<uint64_t>(random, {0, most, random.below(most + 1), random.below(most / 16 + 1) * 16});
  spec.offset = element * spec.elementBytes();
  return true;
}

void makePossible(TensorSpec& spec, test::Seeded& random) {
  while (!isCountable(spec)) *std::max_element(spec.shape.begin(), spec.shape.end()) >>= 16;
  uint64_t elements = 1;
  const bool isLarge = std::any_of(spec.shape.begin(), spec.shape.end(), [&](uint64_t extent) {
    return __builtin_mul_overflow(elements, extent, &elements);
  });
  if (isLarge || elements > Arena::kRegionBytes / spec.elementBytes()) {
    const auto largest = std::max_element(spec.shape.begin(), spec.shape.end());
    const size_t kept = spec.shape.size() == 1 ? 1 : static_cast<size_t>(largest - spec.shape.begin());
    size_t axis = random.below(spec.shape.size());
    if (axis == kept) axis = (axis + 1) % spec.shape.size();
    spec.shape[axis] = 0;
  }
  if (!fits(spec)) place(spec, random);
}

}  // namespace mnk::fuzz
