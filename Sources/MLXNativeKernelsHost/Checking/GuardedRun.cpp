#include "GuardedRun.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "Checking/DeclaredAccesses.hpp"
#include "HostBuffer.hpp"
#include "HostOptions.hpp"
#include "Support/Errors.hpp"

namespace mnk::host {

namespace {

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
  return Error{.code = ErrorCode::deviceFault,
               .op = job.op(),
               .what = fmt::format("{} changed a byte that its dispatch does not declare as written", job.name()),
               .got = fmt::format("{} changed{}", nameOfByte(dispatch, *changed), job.inSubmission()),
               .expected = "writes inside of the declared regions only",
               .fix = "Correct the kernel's indices or the regions of its dispatch." + replayHint(job.options)};
}

}  // namespace mnk::host
