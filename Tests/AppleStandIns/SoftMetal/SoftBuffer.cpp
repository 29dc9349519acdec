#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "SoftDevice.hpp"

extern "C" void* _Block_copy(const void* block);
extern "C" void _Block_release(const void* block);

namespace softmetal {

namespace {

// A new buffer contains garbage, so that no code relies on zeros.
constexpr int kGarbage = 0xFB, kBehindTheEnd = 0xC5;

uint64_t pageBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t inPages(uint64_t length) {
  return (length + pageBytes() - 1) / pageBytes() * pageBytes();
}

void fillWithGarbage(std::byte* bytes, uint64_t length) {
  // Filling a very large buffer would allocate all of its pages.
  constexpr uint64_t kMaxFilled = uint64_t(64) << 20, kEnds = uint64_t(1) << 20;
  if (length <= kMaxFilled) {
    std::memset(bytes, kGarbage, length);
  } else {
    std::memset(bytes, kGarbage, kEnds);
    std::memset(bytes + length - kEnds, kGarbage, kEnds);
  }
}

SoftBuffer* makeBuffer(SoftDevice* device, std::shared_ptr<BufferMemory> memory, uint64_t length,
                       MTL::ResourceOptions options) {
  auto host = device->host->wrapMemory(memory->bytes(), length, [memory] {});
  if (!host) {
    violate(fmt::format("{}: a buffer cannot be wrapped: {}", device->describe(), host.error().message()));
    return nullptr;
  }
  auto* buffer = make<SoftBuffer>();
  buffer->owner = Ref<SoftDevice>(device);
  buffer->memory = std::move(memory);
  buffer->host = std::move(*host);
  buffer->bytes = length;
  buffer->options = options;
  device->allocated += length;
  count(&Counters::buffers);
  return buffer;
}

// Reports a length on which Metal's validation aborts.
bool isLengthFine(SoftDevice* device, uint64_t length) {
  if (length > 0 && length <= device->about.maxBufferLength) return true;
  violate(fmt::format("{}: a buffer of {} bytes was requested, expected 1 to {}", device->describe(), length,
                      device->about.maxBufferLength));
  return false;
}

}  // namespace

std::shared_ptr<BufferMemory> BufferMemory::allocate(uint64_t length) {
  const uint64_t page = pageBytes(), mapped = inPages(length) + 2 * page;
  void* mapping = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto memory = std::make_shared<BufferMemory>();
  memory->mapping_ = mapping;
  memory->mapped_ = mapped;
  memory->bytes_ = static_cast<std::byte*>(mapping) + page;
  memory->length_ = length;
  if (mprotect(memory->bytes_, inPages(length), PROT_READ | PROT_WRITE) != 0) return nullptr;
  fillWithGarbage(memory->bytes_, length);
  std::memset(memory->bytes_ + length, kBehindTheEnd, inPages(length) - length);
  return memory;
}

std::shared_ptr<BufferMemory> BufferMemory::wrap(void* bytes, uint64_t length, Deallocator deallocator) {
  auto memory = std::make_shared<BufferMemory>();
  memory->bytes_ = static_cast<std::byte*>(bytes);
  memory->length_ = length;
  memory->deallocator_ = reinterpret_cast<Deallocator>(_Block_copy(reinterpret_cast<const void*>(deallocator)));
  return memory;
}

BufferMemory::~BufferMemory() {
  if (mapping_) munmap(mapping_, mapped_);
  if (deallocator_) {
    deallocator_(bytes_, length_);
    _Block_release(reinterpret_cast<const void*>(deallocator_));
  }
}

bool BufferMemory::isOverrun() const {
  const uint64_t rest = mapping_ ? inPages(length_) - length_ : 0;
  const std::byte* const end = bytes_ + length_;
  return rest > 0 && (*end != std::byte{kBehindTheEnd} || std::memcmp(end, end + 1, rest - 1) != 0);
}

SoftBuffer* SoftDevice::newBuffer(NS::UInteger length, MTL::ResourceOptions options) {
  if (shallFail(Call::buffer) || !isLengthFine(this, length)) return nullptr;
  auto memory = BufferMemory::allocate(length);
  return memory ? makeBuffer(this, std::move(memory), length, options) : nullptr;
}

SoftBuffer* SoftDevice::newBufferWithBytes(const void* bytes, NS::UInteger length, MTL::ResourceOptions options) {
  if (!bytes) {
    violate(fmt::format("{}: newBufferWithBytes: was given a null pointer", describe()));
    return nullptr;
  }
  SoftBuffer* const buffer = newBuffer(length, options);
  if (buffer) std::memcpy(buffer->memory->bytes(), bytes, length);
  return buffer;
}

SoftBuffer* SoftDevice::newBufferNoCopy(void* memory, NS::UInteger length, MTL::ResourceOptions options,
                                        Deallocator deallocator) {
  if (shallFail(Call::buffer) || !isLengthFine(this, length)) return nullptr;
  if (!memory || reinterpret_cast<uintptr_t>(memory) % pageBytes() != 0) {
    violate(fmt::format("{}: a no-copy buffer starts at {}, expected the start of a page", describe(), memory));
    return nullptr;
  }
  if (length % pageBytes() != 0) {
    violate(
        fmt::format("{}: a no-copy buffer has {} bytes, expected whole pages of {}", describe(), length, pageBytes()));
    return nullptr;
  }
  if ((options >> 4 & 15) == MTL::StorageModePrivate) {
    violate(fmt::format("{}: a no-copy buffer was requested in private storage", describe()));
    return nullptr;
  }
  return makeBuffer(this, BufferMemory::wrap(memory, length, deallocator), length, options);
}

void* SoftBuffer::contents() {
  if (storage() != MTL::StorageModePrivate) return memory->bytes();
  violate(fmt::format("{} is private, and the processor asked for its contents", describe()));
  return nullptr;
}

void SoftBuffer::finish() {
  if (memory->isOverrun()) violate(fmt::format("{} of {} bytes was written past its end", describe(), bytes));
  owner->allocated -= bytes;
  host.reset();
  memory.reset();
  owner = {};
}

// The default of a buffer that is not on a heap.
MTL::HazardTrackingMode SoftBuffer::hazardTrackingMode() {
  return isUntracked() ? MTL::HazardTrackingModeUntracked : MTL::HazardTrackingModeTracked;
}

void defineBuffers() {
  define<SoftBuffer>("MTLBuffer")
      .on<&SoftBuffer::contents>("contents")
      .on<&SoftBuffer::length>("length")
      .on<&SoftBuffer::allocatedSize>("allocatedSize")
      .on<&SoftBuffer::gpuAddress>("gpuAddress")
      .on<&SoftBuffer::device>("device")
      .on<&SoftBuffer::labelMessage>("label")
      .on<&SoftBuffer::setLabelMessage>("setLabel:")
      .on<&SoftBuffer::storageMode>("storageMode")
      .on<&SoftBuffer::cpuCacheMode>("cpuCacheMode")
      .on<&SoftBuffer::hazardTrackingMode>("hazardTrackingMode")
      .on<&SoftBuffer::resourceOptions>("resourceOptions");
}

}  // namespace softmetal
