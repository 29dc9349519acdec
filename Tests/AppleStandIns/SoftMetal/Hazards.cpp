#include "Hazards.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace softmetal {

namespace {

// Whether [begin, end) overlaps a row of the region.
bool meetsRow(uint64_t begin, uint64_t end, uint64_t base, const mnk::Region& region) {
  const uint64_t start = base + region.offset;
  if (end <= start) return false;
  if (region.rows <= 1 || region.rowStride == 0) return begin < start + region.rowBytes;
  // Only the last row that starts before the end can overlap.
  const uint64_t row = std::min(region.rows - 1, (end - 1 - start) / region.rowStride);
  if (region.rowBytes <= region.rowStride) return begin < start + row * region.rowStride + region.rowBytes;
  return begin < base + region.end();
}

std::optional<std::string> conflictOf(const DeclaredAccess& later, const DeclaredAccess& earlier,
                                      std::string_view between = "barrier") {
  if (!later.isWrite && !earlier.isWrite) return std::nullopt;
  if (!overlap(later.begin, later.region, earlier.begin, earlier.region)) return std::nullopt;
  return fmt::format("kernel {} {} bytes of {} that kernel {} {}, with no {} between them ({} after {})", later.kernel,
                     later.isWrite ? "writes" : "reads", later.bufferName, earlier.kernel,
                     earlier.isWrite ? "writes" : "reads", between, later.isWrite ? "write" : "read",
                     earlier.isWrite ? "write" : "read");
}

}  // namespace

std::optional<std::string> conflictAcross(const UntrackedAccess& later, const UntrackedAccess& earlier) {
  const auto orders = [&](const SoftFence* fence) { return earlier.updatedSince.contains(fence); };
  if (std::any_of(later.waitedFor.begin(), later.waitedFor.end(), orders)) return std::nullopt;
  return conflictOf(later.access, earlier.access, "fence");
}

void Hazards::update(const SoftFence* fence) {
  for (UntrackedAccess& each : untracked_) each.updatedSince.insert(fence);
}

bool overlap(uint64_t firstBegin, const mnk::Region& first, uint64_t secondBegin, const mnk::Region& second) {
  if (first.byteCount() == 0 || second.byteCount() == 0) return false;
  if (first.rows > second.rows) return overlap(secondBegin, second, firstBegin, first);
  for (uint64_t row = 0; row < first.rows; ++row) {
    const uint64_t begin = firstBegin + first.offset + row * first.rowStride;
    if (meetsRow(begin, begin + first.rowBytes, secondBegin, second)) return true;
  }
  return false;
}

std::optional<std::string> Hazards::add(std::span<const DeclaredAccess> accesses) {
  std::optional<std::string> found;
  for (const DeclaredAccess& access : accesses) {
    for (const auto* list : {&unordered_, &untrackedEarlier_}) {
      for (const DeclaredAccess& earlier : *list) {
        if (!found) found = conflictOf(access, earlier);
      }
    }
  }
  unordered_.insert(unordered_.end(), accesses.begin(), accesses.end());
  std::copy_if(accesses.begin(), accesses.end(), std::back_inserter(untrackedHere_),
               [](const DeclaredAccess& access) { return access.isUntracked; });
  for (const DeclaredAccess& access : accesses) {
    if (access.isUntracked) untracked_.push_back({access, waitedFor_, {}});
  }
  return found;
}

void Hazards::barrier() {
  unordered_.clear();
}

void Hazards::orderAfter(size_t mark) {
  if (mark <= forgotten_) return;
  const auto begin = untrackedEarlier_.begin();
  untrackedEarlier_.erase(begin, begin + static_cast<ptrdiff_t>(mark - forgotten_));
  forgotten_ = mark;
}

void Hazards::endEncoder() {
  unordered_.clear();
  untrackedEarlier_.insert(untrackedEarlier_.end(), untrackedHere_.begin(), untrackedHere_.end());
  untrackedHere_.clear();
}

}  // namespace softmetal
