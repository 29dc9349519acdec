#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "Checking/CheckedRun.hpp"
#include "HostBuffer.hpp"
#include "HostOptions.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

constexpr size_t kPageBytes = 4096;
// More than any 32-bit index of a four-byte element reaches; less if address space is short.
constexpr size_t kWidestMargin = size_t(17) << 30, kNarrowestMargin = size_t(1) << 20;

struct Span {
  std::byte* begin;
  std::byte* end;
};

std::vector<Span> boundSpans(const Dispatch& dispatch, const Arguments& arguments) {
  std::vector<Span> spans;
  const auto add = [&](uint32_t index, size_t bytes) {
    auto* begin = static_cast<std::byte*>(arguments.buffers[index]);
    spans.push_back({begin, begin + bytes});
  };
  for (const Binding& binding : dispatch.buffers) add(binding.index, binding.length);
  for (const InlineBytes& bytes : dispatch.inlines) add(bytes.index, bytes.bytes.size());
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> merged;
  for (const Span& span : spans) {
    const bool joins = !merged.empty() && (span.begin < merged.back().end || span.begin == merged.back().begin);
    if (joins) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

// Reserves address space only; pages are allocated on first access.
bool map(MarginCopies::Copy& copy) {
  const size_t skew = reinterpret_cast<uintptr_t>(copy.original) % kPageBytes;  // keeps the alignment
  for (size_t margin = kWidestMargin; margin >= kNarrowestMargin; margin /= 4) {
    const size_t bytes = skew + copy.bytes + 2 * margin;
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) continue;
    copy.mapping = static_cast<std::byte*>(mapping);
    copy.mappedBytes = bytes;
    copy.base = copy.mapping + margin / kPageBytes * kPageBytes + skew;
    return true;
  }
  return false;
}

// Checked around a slice in its buffer. Other work may use bytes farther away while the dispatch runs.
constexpr uint64_t kSliceMargin = 256;

// Saved bytes and their address.
struct Kept {
  uint64_t begin;
  std::vector<std::byte> bytes;
};

std::vector<Kept> keepUndeclared(const Dispatch& dispatch, const DeclaredBytes& declared) {
  ByteRanges near;
  for (const Binding& binding : dispatch.buffers) {
    const uint64_t start = reinterpret_cast<uintptr_t>(binding.buffer->contents());
    const uint64_t low = binding.offset - std::min(binding.offset, kSliceMargin);
    const uint64_t high = std::min(binding.offset + binding.length + kSliceMargin, binding.buffer->length());
    near.add(start + low, start + high);
  }
  std::vector<Kept> kept;
  const ByteRanges watched = near.without(declared.writes);
  for (const auto& range : watched.ranges()) {
    const auto* bytes = reinterpret_cast<const std::byte*>(range.begin);
    kept.push_back({range.begin, {bytes, bytes + (range.end - range.begin)}});
  }
  return kept;
}

std::optional<uint64_t> firstChanged(const std::vector<Kept>& kept) {
  for (const Kept& part : kept) {
    const auto* now = reinterpret_cast<const std::byte*>(part.begin);
    const auto difference = std::mismatch(part.bytes.begin(), part.bytes.end(), now);
    if (difference.first != part.bytes.end()) {
      return part.begin + static_cast<uint64_t>(difference.first - part.bytes.begin());
    }
  }
  return std::nullopt;
}

// Restores the canaries of all buffers, so that no later dispatch is blamed.
std::optional<uint64_t> firstBrokenCanary(const Dispatch& dispatch) {
  std::optional<uint64_t> first;
  for (const Binding& binding : dispatch.buffers) {
    const auto* buffer = dynamic_cast<const HostBuffer*>(binding.buffer.get());
    const auto broken = buffer ? buffer->brokenCanary() : std::nullopt;
    if (!broken || first) continue;
    first = reinterpret_cast<uintptr_t>(binding.buffer->contents()) + static_cast<uint64_t>(*broken);
  }
  return first;
}

}  // namespace

Error noMemoryToCheck(const DispatchJob& job, std::string_view what) {
  return hostError(ErrorCode::outOfMemory, fmt::format("no memory to check {}", job.name()), what,
                   "memory for a copy of every buffer, and many times what the dispatch touches",
                   "Check with smaller buffers.", true);
}

Result<MarginCopies> MarginCopies::make(const DispatchJob& job, Arguments& arguments) {
  MarginCopies result;
  const Arguments originals = arguments;
  const std::vector<Span> spans = boundSpans(job.ready.dispatch, arguments);
  result.copies_.reserve(spans.size());  // so that no mapping leaks
  for (const Span& span : spans) {
    Copy copy;
    copy.original = span.begin;
    copy.bytes = static_cast<size_t>(span.end - span.begin);
    if (!map(copy)) {
      return noMemoryToCheck(job, fmt::format("a copy of {} bytes", copy.bytes));
    }
    std::memcpy(copy.base, copy.original, copy.bytes);
    result.copies_.push_back(copy);
    for (uint32_t i = 0; i < kBufferIndices; ++i) {
      auto* bound = static_cast<std::byte*>(originals.buffers[i]);
      const bool isInside = bound && bound >= span.begin && (bound < span.end || bound == span.begin);
      if (isInside) arguments.buffers[i] = copy.base + (bound - span.begin);
    }
  }
  return result;
}

MarginCopies::~MarginCopies() {
  for (const Copy& copy : copies_) munmap(copy.mapping, copy.mappedBytes);
}

std::optional<uint32_t> MarginCopies::find(const void* address) const {
  for (uint32_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].covers(address)) return i;
  }
  return std::nullopt;
}

void MarginCopies::copyBack(uint32_t copy, const ByteRanges& written) const {
  const Copy& from = copies_[copy];
  for (const auto& range : written.ranges()) {
    std::memcpy(from.original + range.begin, from.base + range.begin, range.end - range.begin);
  }
}

Result<void> runGuarded(const DispatchJob& job) {
  const Dispatch& dispatch = job.ready.dispatch;
  const DeclaredBytes declared(dispatch);
  poison(declared.outputs(dispatch));
  const auto kept = keepUndeclared(dispatch, declared);
  const auto ran = runDispatch(job);
  const auto broken = firstBrokenCanary(dispatch);
  if (!ran) return ran;
  auto changed = firstChanged(kept);
  if (!changed) changed = broken;
  if (!changed) return {};
  return makeError(ErrorCode::deviceFault, job.op(),
                   fmt::format("{} changed a byte that its dispatch does not declare as written", job.name()),
                   fmt::format("{} changed{}", nameOfByte(dispatch, *changed), job.inSubmission()),
                   "writes inside of the declared regions only",
                   "Correct the kernel's indices or the regions of its dispatch." + replayHint(job.options));
}

}  // namespace mnk::host
