// Turns what lanes of a checked module do (Watcher.h) into entries of the shadow memory, and keeps what is found.
// A store is entered when the next thing happens, because its value is in memory only then; lanes do not switch in
// between.
#pragma once
#include <array>
#include <map>

#include "Devices/Host/Checking/MarginCopies.hpp"
#include "Devices/Host/Checking/Shadow.hpp"

namespace mnk::host {

// Data of a loaded object, such as a table at file scope.
class ConstantData {
 public:
  bool holds(const void* address);

 private:
  std::array<uintptr_t, 64> known_ = {};
};

class Observer {
 public:
  explicit Observer(const MarginCopies& memory) : memory_(memory), shadow_(findings_) {
    for (const auto& copy : memory.copies()) shadow_.addDeviceRegion(copy.base, copy.bytes);
  }

  // What a launch is given. Valid as long as the observer.
  Watcher watcher();

  using TextLine = std::pair<std::string, uint32_t>;
  // Something that the compiler's checks or the vocabulary saw, at a line of the text.
  struct Mistake {
    std::string text;
    Actor actor;
  };

  const Shadow& shadow() const { return shadow_; }
  Findings& findings() { return findings_; }
  const std::map<TextLine, Mistake>& mistakes() const { return mistakes_; }

 private:
  struct Store {
    bool isPending = false;
    uint32_t region = 0;
    size_t offset = 0, bytes = 0;
    uint32_t lane = 0;
    Place place = 0;
  };

  bool access(AccessKind kind, const std::byte* address, size_t bytes, uint32_t lane, Place place);
  void enter(const Store& access, AccessKind kind);
  void enterPending();
  void noteOutside(uint32_t region, int64_t offset, size_t bytes, const Actor& actor);

  const MarginCopies& memory_;
  Findings findings_;
  Shadow shadow_;
  std::map<TextLine, Mistake> mistakes_;
  ConstantData constants_;
  Store pending_;
  const std::byte* arena_ = nullptr;
  size_t arenaBytes_ = 0;
};

}  // namespace mnk::host
