// Turns the accesses of lanes in a checked module (Module.h) into shadow memory entries, and collects findings. A
// store is entered at the next event, because its value is not in memory before; lanes do not switch in between.
#pragma once
#include <array>
#include <map>

#include "Checking/GuardedRun.hpp"
#include "Checking/Shadow.hpp"

namespace mnk::host {

// Constant data of a loaded object, such as a table at file scope.
class ConstantData {
 public:
  bool holds(const void* address);

 private:
  std::array<uintptr_t, 64> known_ = {};  // pages; 0 is none
};

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
