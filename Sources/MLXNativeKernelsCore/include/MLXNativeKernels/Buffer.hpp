// Memory of a device. A buffer's bytes are zero when it is made, unless it was asked for as undefined, and its reads
// and writes are bounds-checked.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "MLXNativeKernels/Result.hpp"

namespace mnk {

class Device;

// A range of memory. Two ranges can overlap only if they have the same space.
struct MemoryRange {
  const void* space = nullptr;  // an object that owns addresses; null is the host's address space
  uint64_t begin = 0;
  uint64_t end = 0;

  bool overlaps(const MemoryRange& other) const {
    return space == other.space && std::max(begin, other.begin) < std::min(end, other.end);
  }
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint64_t length() const { return length_; }

  // The device that made it; null for a buffer that only plans use.
  virtual std::shared_ptr<Device> device() const = 0;
  virtual bool isOf(const Device& owner) const { return device().get() == &owner; }
  // All of its bytes. Buffers that wrap the same memory report overlapping ranges.
  virtual MemoryRange range() const = 0;
  // Bytes that the processor can touch, or null if there are none. Nothing is checked: wait for submitted work before
  // they are used. Failures of work that was to write them are not reported, and writes here do not clear them.
  virtual std::byte* contents() = 0;
  // Whether its owner orders the work of several encoders on its bytes, as a cache does.
  bool isOrdered() const { return isOrdered_; }
  void setOrdered() { isOrdered_ = true; }

  // Copies between the processor and the buffer. They wait for work that was committed before the call and touches
  // these bytes: a read for work that writes them, a write for work that reads or writes them. A read fails if the work
  // that was to write the bytes failed, until they are written again. If waiting could never end, in a handler of
  // finished work or for a command buffer that the app has not committed, they fail with wouldDeadlock. They also fail
  // while an encoder that is not committed has recorded work on these bytes: a read if the work writes them, a write if
  // it reads or writes them.
  Result<void> read(uint64_t offset, std::span<std::byte> into) const;
  // The same, for bytes as they are before encoders that are not committed run.
  Result<void> readCommitted(uint64_t offset, std::span<std::byte> into) const;
  Result<void> write(uint64_t offset, std::span<const std::byte> from);

 protected:
  friend class ScratchPool;
  // A buffer that rests in its device's pool does not keep the device alive. False if it needs the device.
  virtual bool detach() { return false; }
  virtual void attach(std::shared_ptr<Device>) {}

  explicit Buffer(uint64_t length) : length_(length) {}
  // Called with a range that lies inside the buffer. The default copies through contents().
  virtual Result<void> copyOut(uint64_t offset, std::span<std::byte> into) const;
  virtual Result<void> copyIn(uint64_t offset, std::span<const std::byte> from);

 private:
  template <typename Wait>
  Result<void> readAfter(Wait wait, uint64_t offset, std::span<std::byte> into) const;
  MemoryRange part(uint64_t offset, uint64_t bytes) const;

  uint64_t length_;
  bool isOrdered_ = false;
};

}  // namespace mnk
