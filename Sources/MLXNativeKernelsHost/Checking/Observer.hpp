// Turns what lanes of a checked module do (Watcher.h) into entries of the shadow memory, and keeps what is found.
// A store is entered when the next thing happens, because its value is in memory only then; lanes do not switch in
// between.
#pragma once
#include <array>
#include <map>

#include "Checking/GuardedCopies.hpp"
#include "Checking/Shadow.hpp"

namespace mnk::host {

// Data of a loaded object, such as a table at file scope.
class ConstantData {
 public:
  bool holds(const void* address);

 private:
  std::array<uintptr_t, 64> known_ = {};  // pages; 0 is none
};

class Observer {
 public:
  // `outputs` are the addresses, of the original memory, that must be written before they are read.
  Observer(const MarginCopies& memory, const ByteRanges& outputs);

  // What a launch is given. Valid as long as the observer.
  Watcher watcher();

  // A line of the text, or a return address in it.
  struct TextPlace {
    std::string file;
    uint32_t line = 0;
    Place place = 0;
    auto operator<=>(const TextPlace&) const = default;
  };
  // Something that the compiler's checks or the vocabulary saw.
  struct Mistake {
    std::string text;
    Actor actor;
  };

  const Shadow& shadow() const { return shadow_; }
  Findings& findings() { return findings_; }
  const std::map<TextPlace, Mistake>& mistakes() const { return mistakes_; }
  // Memory ran out while it was watching: what was found is not all.
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
  // Whether the dispatch may go on.
  bool noteOutside(uint32_t region, int64_t offset, size_t bytes, const Actor& actor);
  void noteMistake(TextPlace place, uint32_t lane, const char* text);
  // Called from lanes, through which no exception may pass.
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
