#include "World.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "Reference/SoftFloat.hpp"

namespace mnk::fuzz {

namespace {

constexpr uint64_t kHomes = 8;  // one in so many is watched, where that is possible, and a quarter is guarded
constexpr uint32_t kPlain = 0, kGuarded = 1, kWatched = 2;

mnk_host_options optionsOf(uint32_t index, uint64_t seed) {
  mnk_host_options options{};
  options.size = sizeof options;
  options.workers = 1;
  if (index == kPlain) return options;
  options.order_seed = seed | 1;
  options.checking = index == kWatched ? 2 : 1;  // full, guarded
  options.level = 1;
  return options;
}

// Full checking needs a compiler that makes code for this processor: not every system has one, and an emulated one has
// the machine's. It also takes its time where a sanitizer watches as well.
bool canWatch() {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  static const bool isPossible = [] {
    constexpr char kText[] = "kernel void probe(device uint* x [[buffer(0)]]) { x[0] = 1; }\nexport_kernel(probe)\n";
    const mnk_host_options options = optionsOf(kWatched, 1);
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

}  // namespace

uint64_t TensorWords::elements() const {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

bool TensorWords::overlaps(const TensorWords& other) const {
  return arena == other.arena &&
         std::max(offset, other.offset) < std::min(offset + bytes(), other.offset + other.bytes());
}

std::string TensorWords::text() const {
  return fmt::format("{} [{}] at byte {} of arena {}{}", mnk_dtype_name(dtype), fmt::join(shape, ", "), offset, arena,
                     device == 0 ? "" : " of another device");
}

World::World(uint64_t seed, size_t cases) : pattern_(kArenaBytes), alive_(std::max<size_t>(cases, 1)) {
  for (const uint32_t index : {kPlain, kGuarded, kWatched}) {
    if (index == kWatched && !canWatch()) break;
    const mnk_host_options options = optionsOf(index, seed);
    test::Caught caught;
    devices_.emplace_back(mnk_device_make_host(&options, caught.out()), mnk_device_release);
    if (devices_.back()) continue;
    if (index != kWatched || mnk_error_get_code(caught.get()) != MNK_UNSUPPORTED) {
      throw std::runtime_error(fmt::format("a Host device could not be made: {}", mnk_error_message(caught.get())));
    }
    devices_.pop_back();
  }
  for (uint64_t byte = 0; byte < kArenaBytes; ++byte) pattern_[byte] = static_cast<std::byte>(byte * 151 + byte / 256);
  for (Arena& arena : arenas_) {
    // An allocation of its own for each, so that AddressSanitizer sees their ends.
    arena.memory = {static_cast<std::byte*>(std::aligned_alloc(64, kArenaBytes)), std::free};
    if (!arena.memory) throw std::runtime_error("no memory for an arena");
    arena.image.resize(kArenaBytes);
  }
}

mnk_device* World::device(uint32_t index) {
  const uint32_t other = home_ == kPlain ? kGuarded : kPlain;
  return devices_[index == 0 ? home_ : other].get();
}

bool World::isWatched() const {
  return home_ == kWatched;
}

void World::begin(size_t index, test::Seeded& random) {
  tensors_.clear();
  allowances_.clear();
  index_ = index;
  const uint64_t draw = random.below(kHomes);  // the same on systems that cannot watch
  home_ = draw < kHomes / 4 ? kGuarded : kPlain;
  if (draw == kHomes - 1 && devices_.size() > kWatched) home_ = kWatched;
  for (Arena& arena : arenas_) std::memcpy(arena.memory.get(), pattern_.data(), kArenaBytes);
}

mnk_tensor* World::wrap(const TensorWords& words, uint64_t begin, uint64_t bytes, const std::vector<uint64_t>& shape) {
  std::atomic<int32_t>& alive = alive_[index_];
  alive += 1;
  const auto release = [](void* counter) { *static_cast<std::atomic<int32_t>*>(counter) -= 1; };
  test::Caught caught;
  mnk_tensor* tensor =
      mnk_tensor_make_wrapping(device(words.device), arenas_[words.arena].memory.get() + begin, bytes, words.dtype,
                               shape.data(), shape.size(), words.offset - begin, release, &alive, caught.out());
  if (!tensor) throw std::runtime_error(fmt::format("{}: {}", words.text(), mnk_error_message(caught.get())));
  tensors_.emplace_back(tensor, mnk_tensor_release);
  return tensor;
}

mnk_tensor* World::make(const TensorWords& words, test::Seeded& random) {
  const uint64_t bytes = words.bytes();
  const auto keep = [&](mnk_tensor* tensor) {
    if (!tensor) throw std::runtime_error(fmt::format("no view as {}", words.text()));
    tensors_.emplace_back(tensor, mnk_tensor_release);
    return tensor;
  };
  switch (random.below(4)) {
    case 0:
      return wrap(words, 0, kArenaBytes, words.shape);
    case 1:
      return wrap(words, words.offset, bytes, words.shape);
    case 2: {
      const mnk_tensor* flat = wrap(words, 0, words.offset + bytes, {words.elements()});
      return keep(mnk_tensor_make_reshaped(flat, words.shape.data(), words.shape.size(), nullptr));
    }
    default: {
      // A slice: entries of the outermost axis lie before it and after it.
      const uint64_t entry = words.shape.empty() || words.shape[0] == 0 ? 0 : bytes / words.shape[0];
      if (entry == 0) return wrap(words, words.offset, bytes, words.shape);
      TensorWords whole = words;
      const uint64_t before = random.below(words.offset / entry + 1);
      const uint64_t after = random.below((kArenaBytes - words.offset - bytes) / entry + 1);
      whole.offset -= before * entry;
      whole.shape[0] += before + after;
      const mnk_tensor* tensor = wrap(whole, 0, kArenaBytes, whole.shape);
      return keep(mnk_tensor_make_slice(tensor, before, words.shape[0], nullptr));
    }
  }
}

void World::fill(const TensorWords& words, std::span<const std::byte> bytes) {
  const uint64_t count = std::min<uint64_t>(words.bytes(), bytes.size());
  if (count != 0) std::memcpy(arenas_[words.arena].memory.get() + words.offset, bytes.data(), count);
}

void World::remember() {
  for (Arena& arena : arenas_) std::memcpy(arena.image.data(), arena.memory.get(), kArenaBytes);
}

std::span<std::byte> World::image(const TensorWords& words) {
  return std::span(arenas_[words.arena].image).subspan(words.offset, words.bytes());
}

void World::allow(const TensorWords& words, IsRight isRight) {
  allowances_.push_back({words, std::move(isRight)});
}

void World::allowAnyNaN(const TensorWords& words, const std::vector<bool>& isWritten) {
  const auto dtype = static_cast<DType>(words.dtype);
  const uint64_t size = words.elementBytes();
  allow(words, [=](uint64_t element, uint64_t expected, uint64_t got) {
    return isWritten[element * size] && test::isNaN(dtype, expected) && test::isNaN(dtype, got);
  });
}

uint64_t World::gotBits(const TensorWords& words, uint64_t element) const {
  uint64_t bits = 0;
  const uint64_t size = words.elementBytes();
  std::memcpy(&bits, arenas_[words.arena].memory.get() + words.offset + element * size, size);
  return bits;
}

uint64_t World::expectedBits(const TensorWords& words, uint64_t element) const {
  uint64_t bits = 0;
  const uint64_t size = words.elementBytes();
  std::memcpy(&bits, arenas_[words.arena].image.data() + words.offset + element * size, size);
  return bits;
}

std::string World::valuesAt(uint32_t arena, uint64_t byte) const {
  for (auto last = allowances_.rbegin(); last != allowances_.rend(); ++last) {
    const TensorWords& words = last->words;
    if (words.arena != arena || byte < words.offset || byte >= words.offset + words.bytes()) continue;
    const uint64_t element = (byte - words.offset) / words.elementBytes();
    const auto dtype = static_cast<DType>(words.dtype);
    return fmt::format(" (element {} of {}: got {}, expected {})", element, words.text(),
                       test::valueOf(dtype, gotBits(words, element)),
                       test::valueOf(dtype, expectedBits(words, element)));
  }
  return {};
}

std::string World::difference() {
  for (const Allowance& allowance : allowances_) {
    const TensorWords& words = allowance.words;
    const std::span<std::byte> expected = image(words);
    for (uint64_t element = 0; element < words.elements(); ++element) {
      const uint64_t bits = gotBits(words, element);
      if (bits == expectedBits(words, element)) continue;
      if (!allowance.isRight(element, expectedBits(words, element), bits)) continue;
      std::memcpy(&expected[element * words.elementBytes()], &bits, words.elementBytes());
    }
  }
  for (uint32_t index = 0; index < kArenas; ++index) {
    const Arena& arena = arenas_[index];
    if (std::memcmp(arena.memory.get(), arena.image.data(), kArenaBytes) == 0) continue;
    uint64_t byte = 0;
    while (arena.memory.get()[byte] == arena.image[byte]) ++byte;
    return fmt::format("byte {} of arena {}: got {:#04x}, expected {:#04x}{}", byte, index,
                       static_cast<unsigned>(arena.memory.get()[byte]), static_cast<unsigned>(arena.image[byte]),
                       valuesAt(index, byte));
  }
  return {};
}

std::vector<size_t> World::casesThatLeak() {
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

}  // namespace mnk::fuzz
