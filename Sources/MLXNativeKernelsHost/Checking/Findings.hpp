// The errors that checked execution found in one dispatch: races, out-of-bounds and undeclared accesses, and reads of
// uninitialized memory. Findings are grouped by source location, with the lowest lanes and bytes as the example, so the
// result does not depend on the order of lanes.
#pragma once
#include <compare>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "Executor/Module.h"
#include "HostLibrary.hpp"

namespace mnk::host {

enum class FindingKind : uint8_t {
  raceInSimdgroup,
  raceInThreadgroup,
  raceInGrid,
  outOfBounds,
  uninitialized,
  undeclared
};

using Place = uintptr_t;  // the return address of a callback

struct Actor {
  AccessKind kind = AccessKind::read;
  Place place = 0;
  uint32_t threadgroup = 0;
  uint32_t lane = 0;  // in the threadgroup
  auto operator<=>(const Actor&) const = default;
};

// "threadgroup 0 simdgroup 1 lane 5"
std::string nameOf(const Actor& actor);
std::string_view verb(AccessKind kind);  // "reads"

inline constexpr uint32_t kNoRegion = ~0u;               // memory outside all regions
inline constexpr uint32_t kArenaRegion = kNoRegion - 1;  // threadgroup memory

struct Sighting {
  FindingKind kind;
  bool sameValue = false;  // both writes stored the same bytes
  uint32_t region = kNoRegion;
  uint32_t array = 0;  // of threadgroup memory
  int64_t offset = 0;  // in the region or the array
  uint32_t bytes = 0;
  Actor first, second;  // equal if there is only one

  bool inDeviceMemory() const { return region != kArenaRegion; }
};
inline Sighting sightingOf(FindingKind kind, uint32_t region, int64_t offset, uint32_t bytes, const Actor& actor) {
  return {.kind = kind, .region = region, .offset = offset, .bytes = bytes, .first = actor, .second = actor};
}

struct Finding {
  FindingKind kind;
  bool sameValue = false;
  int64_t offset = 0;
  Place first = 0, second = 0;
  std::string text;
};

// The lines of kernel source of return addresses in a module compiled for checking: "File.metal:12", or the offset in
// the module if no symbolizer is installed.
std::map<Place, std::string> linesOf(const HostLibrary& library, const std::set<Place>& places);

// The path's last component.
std::string fileName(std::string_view path);

class Findings {
 public:
  void note(Sighting sighting);
  std::set<Place> places() const;

  // One finding per pair of lines, since an unrolled loop has many locations for one line. `lineOf` returns
  // "File.metal:12" and `memoryOf` the memory, such as "buffer 0 + 16".
  std::vector<Finding> describe(const std::function<std::string(Place)>& lineOf,
                                const std::function<std::string(const Sighting&)>& memoryOf,
                                bool allowsSameValue) const;

 private:
  // What the sightings of one finding have in common; `At` is a return address, or a line.
  template <typename At>
  struct Key {
    FindingKind kind;
    uint32_t region;
    At first;
    AccessKind firstKind;
    At second;
    AccessKind secondKind;
    bool sameValue;
    auto operator<=>(const Key&) const = default;
  };
  template <typename At>
  static void keepLowest(std::map<Key<At>, Sighting>& sightings, At first, At second, const Sighting& sighting);

  std::map<Key<Place>, Sighting> sightings_;
};

}  // namespace mnk::host
