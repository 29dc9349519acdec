#include "DeclaredAccesses.hpp"

#include <fmt/core.h>

#include <cstring>

#include "Runtime/HazardTracker.hpp"

namespace mnk::host {

namespace {

uint64_t addressOf(const Binding& binding) {
  return reinterpret_cast<uintptr_t>(binding.buffer->contents()) + binding.offset;
}

void addRegions(const Binding& binding, const std::vector<Region>& regions, ByteRanges& bytes) {
  for (Region region : regions) {
    region.offset += addressOf(binding);
    addBytes(region, bytes);
  }
}

}  // namespace

DeclaredBytes::DeclaredBytes(const Dispatch& dispatch) {
  for (const Binding& binding : dispatch.buffers) {
    addRegions(binding, binding.reads, reads);
    addRegions(binding, binding.writes, writes);
  }
  for (const InlineBytes& bytes : dispatch.inlines) {
    const uint64_t begin = reinterpret_cast<uintptr_t>(bytes.bytes.data());
    reads.add(begin, begin + bytes.bytes.size());
  }
}

ByteRanges DeclaredBytes::outputs(const Dispatch& dispatch) const {
  return dispatch.bytesWritten ? ByteRanges() : writes.without(reads);
}

void poison(const ByteRanges& outputs) {
  constexpr int kPoison = 0xff;  // NaN in every format
  for (const auto& range : outputs.ranges()) {
    std::memset(reinterpret_cast<void*>(range.begin), kPoison, range.end - range.begin);
  }
}

std::string withOffset(uint32_t index, int64_t offset) {
  return fmt::format("{} {} {}", index, offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

std::string nameOfByte(const Dispatch& dispatch, uint64_t address, ByteRanges::Range among) {
  uint32_t index = 0;
  int64_t offset = 0;
  uint64_t nearest = ~uint64_t(0);
  const auto consider = [&](uint32_t candidate, uint64_t begin, uint64_t length) {
    if (begin != among.begin && (begin < among.begin || begin >= among.end)) return;
    const uint64_t end = begin + length;
    const uint64_t distance = address < begin ? begin - address : address >= end ? address - end + 1 : 0;
    if (distance >= nearest) return;
    nearest = distance;
    index = candidate;
    offset = static_cast<int64_t>(address - begin);
  };
  for (const Binding& binding : dispatch.buffers) consider(binding.index, addressOf(binding), binding.length);
  for (const InlineBytes& bytes : dispatch.inlines) {
    consider(bytes.index, reinterpret_cast<uintptr_t>(bytes.bytes.data()), bytes.bytes.size());
  }
  return fmt::format("buffer {}", withOffset(index, offset));
}

}  // namespace mnk::host
