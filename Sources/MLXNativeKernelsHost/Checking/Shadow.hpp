// Shadow memory records who accessed which bytes, and since which barrier. Two accesses conflict if at least one
// writes, they are not both atomic, and no barrier that orders their memory is between them, in either order. So the
// result does not depend on the order in which lanes run.
//
//   lanes of one simdgroup          need a simdgroup_barrier or a threadgroup_barrier with the memory's flag
//   simdgroups of one threadgroup   need a threadgroup_barrier with the memory's flag
//   threadgroups of one dispatch    cannot be ordered
//
// Functions such as simd_sum order no memory. Nothing here depends on kernels, so tests use it directly.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>

#include "Checking/Findings.hpp"
#include "Checking/GuardedRun.hpp"
#include "HostSubmission.hpp"
#include "Support/Bytes.hpp"

namespace mnk::host {

// The kinds that shadow memory distinguishes.
inline constexpr std::array kAccessKinds = {AccessKind::read, AccessKind::write, AccessKind::atomic,
                                            AccessKind::atomicLoad};

constexpr size_t indexOf(AccessKind kind) {
  return static_cast<size_t>(kind);
}
constexpr bool isAtomic(AccessKind kind) {
  return kind != AccessKind::read && kind != AccessKind::write;
}
constexpr bool writes(AccessKind kind) {
  return kind != AccessKind::read && kind != AccessKind::atomicLoad;
}
// Whether two accesses of these kinds to one byte must be ordered.
constexpr bool conflict(AccessKind a, AccessKind b) {
  return (writes(a) || writes(b)) && !(isAtomic(a) && isAtomic(b));
}

class Shadow {
 public:
  explicit Shadow(Findings& findings) : findings_(findings) {}

  // Adds memory to track, at its current address. Offsets in `unset` must be written before they are read. Returns the
  // region's number.
  uint32_t addDeviceRegion(const std::byte* base, size_t bytes, const ByteRanges& unset = {});

  void beginThreadgroup(uint32_t index, const std::byte* arena, size_t bytes);
  // Adds an uninitialized array of threadgroup memory.
  void addThreadgroupArray(size_t offset, size_t bytes);
  void endThreadgroup();

  // The access is within a device region or, in kArenaRegion, within an array of threadgroup memory.
  void enter(uint32_t region, size_t offset, size_t bytes, AccessKind kind, uint32_t lane, Place place);
  bool isInArray(size_t offset, size_t bytes) const;
  // Converts an arena offset to one in the array that contains it or is nearest below.
  void placeInArray(Sighting& sighting) const;

  void simdgroupFence(uint32_t simdgroup, uint32_t memory);
  void threadgroupFence(uint32_t memory);

  // The offsets in a device region with accesses of this kind.
  ByteRanges touched(uint32_t region, AccessKind kind) const;

  // The accessor of a byte, in the first threadgroup with an access of this kind.
  Actor firstToucher(uint32_t region, size_t offset, AccessKind kind) const;

  uint32_t threadgroup() const { return threadgroup_; }

 private:
  static constexpr size_t kBlockBytes = 4096;
  static constexpr unsigned kWidestCell = 4;  // log2: a cell covers up to 16 bytes

  // Lanes of one simdgroup that accessed a cell from one location since the last threadgroup barrier.
  struct Entry {
    uint32_t next = 0;  // index + 1
    Place place = 0;
    uint32_t lanes = 0, epoch = 0;  // lanes since the simdgroup's last barrier
    uint32_t allLanes = 0;          // lanes since the threadgroup's last barrier
    uint32_t region = 0;
    size_t offset = 0;
    uint16_t varied = 0, allVaried = 0;  // bytes written with different values, by `lanes` and by `allLanes`
    uint16_t unset = 0;                  // bytes read before they were written
    uint32_t reader = 0;                 // the lowest lane that did so
    uint8_t simdgroup = 0;
    AccessKind kind = AccessKind::read;
    bool raced = false;
    unsigned char value[1 << kWidestCell] = {};
  };

  // The first threadgroup of the dispatch that accessed a cell, by its lowest lane.
  struct Past {
    uint32_t threadgroup = 0;  // + 1
    uint32_t lane = 0;
    Place place = 0;
    uint16_t varied = 0;  // bytes written with different values
  };

  struct Cell {
    uint32_t era = 0, first = 0;                 // entries of an older era are ordered before all current accesses
    std::array<Past, kAccessKinds.size()> past;  // by AccessKind
  };

  struct Block {
    unsigned shift = 0;  // log2 of a cell's bytes: the narrowest access so far
    std::unique_ptr<Cell[]> cells;
    std::unique_ptr<unsigned char[]> firstWritten;
  };

  // Barriers so far, and accesses since.
  struct Order {
    uint32_t era = 1;
    std::array<uint32_t, 32> epoch = {};  // of each simdgroup
    std::vector<Entry> entries;
  };

  struct Region {
    const std::byte* base = nullptr;
    size_t bytes = 0;
    bool isDevice = true;
    std::vector<Block> blocks;
    std::vector<bool> isSet;  // by byte; empty if all are set
  };

  struct Array {
    size_t offset, bytes;
  };

  struct Touch;

  uint32_t arrayAt(size_t offset) const;
  Order& orderOf(const Region& region) { return region.isDevice ? deviceOrder_ : threadgroupOrder_; }
  void refine(Order& order, Block& block, unsigned shift);
  void touchCell(const Touch& touch);
  void compareWithThreadgroup(const Touch& touch, Cell& cell);
  void noteUnset(const Touch& touch, Entry& entry);
  void compareWithGrid(const Touch& touch, Cell& cell);
  void startEra(Order& order);
  Region& regionAt(uint32_t number) { return number == kArenaRegion ? arena_ : regions_[number]; }

  Findings& findings_;
  std::vector<Region> regions_;
  Region arena_;
  std::vector<Array> arrays_;
  Order deviceOrder_, threadgroupOrder_;
  uint32_t threadgroup_ = 0;
};

// Constant data of a loaded object, such as a table at file scope.
class ConstantData {
 public:
  bool holds(const void* address);

 private:
  std::array<uintptr_t, 64> known_ = {};  // pages; 0 is none
};

// Turns the accesses of lanes in a checked module (Module.h) into shadow memory entries, and collects findings. A
// store is entered at the next event, because its value is not in memory before; lanes do not switch in between.
class Observer {
 public:
  // `outputs` are original addresses that must be written before they are read.
  Observer(const MarginCopies& memory, const ByteRanges& outputs);

  // Passed to a launch. Valid as long as the observer.
  Watcher watcher();

  // A source line or a return address.
  struct TextPlace {
    std::string file;
    uint32_t line = 0;
    Place place = 0;
    auto operator<=>(const TextPlace&) const = default;
  };
  // An error found by the compiler's checks or by MetalStdlib.
  struct Mistake {
    std::string text;
    Actor actor;
  };

  const Shadow& shadow() const { return shadow_; }
  Findings& findings() { return findings_; }
  const std::map<TextPlace, Mistake>& mistakes() const { return mistakes_; }
  // Memory ran out during the run: the findings are incomplete.
  bool ranOutOfMemory() const { return ranOutOfMemory_; }

 private:
  struct Store {
    bool isPending = false;
    uint32_t region = 0;
    size_t offset = 0, bytes = 0;
    uint32_t lane = 0;
    Place place = 0;
  };

  bool access(AccessKind kind, const std::byte* address, size_t bytes, uint32_t lane, Place place);
  void enterPending();
  // Returns whether the dispatch may continue.
  bool noteOutside(uint32_t region, int64_t offset, size_t bytes, const Actor& actor);
  void noteMistake(TextPlace place, uint32_t lane, const char* text);
  // Called from lanes, through which no exception may propagate.
  template <typename Body>
  static bool observe(void* state, Body body);

  const MarginCopies& memory_;
  Findings findings_;
  Shadow shadow_;
  std::map<TextPlace, Mistake> mistakes_;
  bool ranOutOfMemory_ = false;
  uint64_t accesses_ = 0, outside_ = 0;
  ConstantData constants_;
  Store pending_;
  const std::byte* arena_ = nullptr;
  size_t arenaBytes_ = 0;
};

}  // namespace mnk::host
