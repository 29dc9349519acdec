#include "MLXNativeKernels/Buffer.hpp"

#include <cstring>

#include "Runtime/MemoryTracker.hpp"
#include "Support/Bytes.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

Error outside(uint64_t offset, uint64_t count, uint64_t length) {
  return {.op = "Buffer",
          .what = "the range lies outside the buffer",
          .got = fmt::format("{} at offset {}", countText(count, "byte"), offset),
          .expected = fmt::format("a range inside {}", countText(length, "byte")),
          .fix = "Pass an offset and a length inside the buffer."};
}

Error notVisible() {
  return {.code = ErrorCode::unsupported,
          .op = "Buffer",
          .what = "the processor cannot touch this buffer",
          .got = "a buffer without contents",
          .expected = "memory shared with the processor",
          .fix = "Copy through a buffer that the device made."};
}

}  // namespace

template <typename Wait>
Result<void> Buffer::readAfter(Wait wait, uint64_t offset, std::span<std::byte> into) const {
  return guarded("Buffer", [&]() -> Result<void> {
    if (!fits(offset, into.size(), length_)) return outside(offset, into.size(), length_);
    if (into.empty()) return {};
    if (!MemoryTracker::isIdle()) MNK_TRY((MemoryTracker::shared().*wait)(part(offset, into.size())));
    return copyOut(offset, into);
  });
}

Result<void> Buffer::read(uint64_t offset, std::span<std::byte> into) const {
  return readAfter(&MemoryTracker::waitToRead, offset, into);
}

Result<void> Buffer::readCommitted(uint64_t offset, std::span<std::byte> into) const {
  return readAfter(&MemoryTracker::waitToReadCommitted, offset, into);
}

Result<void> Buffer::write(uint64_t offset, std::span<const std::byte> from) {
  return guarded("Buffer", [&]() -> Result<void> {
    if (!fits(offset, from.size(), length_)) return outside(offset, from.size(), length_);
    if (from.empty()) return {};
    if (MemoryTracker::isIdle()) return copyIn(offset, from);
    const MemoryRange bytes = part(offset, from.size());
    MNK_TRY(MemoryTracker::shared().waitToWrite(bytes));
    auto copied = copyIn(offset, from);
    if (copied) MemoryTracker::shared().written(bytes);
    return copied;
  });
}

MemoryRange Buffer::part(uint64_t offset, uint64_t bytes) const {
  const MemoryRange all = range();
  return {all.space, all.begin + offset, all.begin + offset + bytes};
}

Result<void> Buffer::copyOut(uint64_t offset, std::span<std::byte> into) const {
  const std::byte* bytes = const_cast<Buffer*>(this)->contents();
  if (!bytes) return notVisible();
  std::memcpy(into.data(), bytes + offset, into.size());
  return {};
}

Result<void> Buffer::copyIn(uint64_t offset, std::span<const std::byte> from) {
  std::byte* bytes = contents();
  if (!bytes) return notVisible();
  std::memcpy(bytes + offset, from.data(), from.size());
  return {};
}

}  // namespace mnk
