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

}  // namespace

// Pages between two inaccessible ones, of which the rest of the last contains a pattern; or memory of the caller.
class BufferMemory {
 public:
  static std::shared_ptr<BufferMemory> allocate(uint64_t length) {
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
  static std::shared_ptr<BufferMemory> wrap(void* bytes, uint64_t length, Deallocator deallocator) {
    auto memory = std::make_shared<BufferMemory>();
    memory->bytes_ = static_cast<std::byte*>(bytes);
    memory->length_ = length;
    memory->deallocator_ = reinterpret_cast<Deallocator>(_Block_copy(reinterpret_cast<const void*>(deallocator)));
    return memory;
  }
  ~BufferMemory() {
    if (mapping_) munmap(mapping_, mapped_);
    if (deallocator_) {
      deallocator_(bytes_, length_);
      _Block_release(reinterpret_cast<const void*>(deallocator_));
    }
  }
  std::byte* bytes() const { return bytes_; }
  // Whether bytes after the end were written.
  bool isOverrun() const {
    const uint64_t rest = mapping_ ? inPages(length_) - length_ : 0;
    const std::byte* const end = bytes_ + length_;
    return rest > 0 && (*end != std::byte{kBehindTheEnd} || std::memcmp(end, end + 1, rest - 1) != 0);
  }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t length_ = 0;
  void* mapping_ = nullptr;
  uint64_t mapped_ = 0;
  Deallocator deallocator_ = nullptr;
};

namespace {

SoftBuffer* makeBuffer(SoftDevice* device, std::shared_ptr<BufferMemory> memory, uint64_t length,
                       MTL::ResourceOptions options) {
  auto host = device->host->wrapMemory(memory->bytes(), length, [memory] {});
  if (!host) return violate("{}: a buffer cannot be wrapped: {}", device->describe(), host.error().message());
  auto* buffer = make<SoftBuffer>();
  buffer->owner = Ref<SoftDevice>(device);
  buffer->memory = std::move(memory);
  buffer->host = std::move(*host);
  buffer->bytes = length;
  buffer->options = options;
  count(&Counters::buffers);
  return buffer;
}

// Reports a length on which Metal's validation aborts.
bool isLengthFine(SoftDevice* device, uint64_t length) {
  if (length > 0 && length <= device->about.maxBufferLength) return true;
  violate("{}: a buffer of {} bytes was requested, expected 1 to {}", device->describe(), length,
          device->about.maxBufferLength);
  return false;
}

}  // namespace

SoftBuffer* SoftDevice::newBuffer(NS::UInteger length, MTL::ResourceOptions options) {
  if (shallFail(Call::buffer) || !isLengthFine(this, length)) return nullptr;
  auto memory = BufferMemory::allocate(length);
  return memory ? makeBuffer(this, std::move(memory), length, options) : nullptr;
}

SoftBuffer* SoftDevice::newBufferWithBytes(const void* bytes, NS::UInteger length, MTL::ResourceOptions options) {
  if (!bytes) return violate("{}: newBufferWithBytes: was given a null pointer", describe());
  SoftBuffer* const buffer = newBuffer(length, options);
  if (buffer) std::memcpy(buffer->memory->bytes(), bytes, length);
  return buffer;
}

SoftBuffer* SoftDevice::newBufferNoCopy(void* memory, NS::UInteger length, MTL::ResourceOptions options,
                                        Deallocator deallocator) {
  if (shallFail(Call::buffer) || !isLengthFine(this, length)) return nullptr;
  if (!memory || reinterpret_cast<uintptr_t>(memory) % pageBytes() != 0) {
    return violate("{}: a no-copy buffer starts at {}, expected the start of a page", describe(), memory);
  }
  if (length % pageBytes() != 0) {
    return violate("{}: a no-copy buffer has {} bytes, expected whole pages of {}", describe(), length, pageBytes());
  }
  if ((options >> 4 & 15) == MTL::StorageModePrivate) {
    return violate("{}: a no-copy buffer was requested in private storage", describe());
  }
  return makeBuffer(this, BufferMemory::wrap(memory, length, deallocator), length, options);
}

void* SoftBuffer::contents() {
  if (storageMode() != MTL::StorageModePrivate) return memory->bytes();
  return violate("{} is private, and the processor asked for its contents", describe());
}

uint64_t SoftBuffer::gpuAddress() {
  return reinterpret_cast<uint64_t>(memory->bytes());
}

void SoftBuffer::finish() {
  if (memory->isOverrun()) violate("{} of {} bytes was written past its end", describe(), bytes);
  host.reset();
  memory.reset();
  owner = {};
}

void defineBuffers() {
  define<SoftBuffer>("MTLBuffer")
      .on<&SoftBuffer::contents>("contents")
      .on<&SoftBuffer::bytes>("length")
      .on<&SoftBuffer::gpuAddress>("gpuAddress")
      .on<&SoftBuffer::owner>("device")
      .on<&SoftBuffer::storageMode>("storageMode")
      .on<&SoftBuffer::hazardTrackingMode>("hazardTrackingMode");
}

}  // namespace softmetal
