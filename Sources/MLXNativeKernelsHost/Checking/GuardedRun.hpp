// The memory that a checked dispatch works on.
#pragma once
#include <optional>
#include <vector>

#include "HostSubmission.hpp"
#include "Support/Bytes.hpp"

namespace mnk::host {

// Copies of a dispatch's bound memory with margins so wide that a wrong index lands in them: an out-of-bounds access
// does no harm, and is detected even if another buffer follows. Overlapping bindings share a copy.
class MarginCopies {
 public:
  // Redirects the arguments to the copies.
  static Result<MarginCopies> make(const DispatchJob& job, Arguments& arguments);
  MarginCopies(MarginCopies&&) = default;
  MarginCopies& operator=(MarginCopies&&) = delete;
  ~MarginCopies();

  struct Copy {
    std::byte* base = nullptr;
    size_t bytes = 0;
    std::byte* original = nullptr;
    std::byte* mapping = nullptr;
    size_t mappedBytes = 0;

    bool covers(const void* address) const { return address >= mapping && address < mapping + mappedBytes; }
  };
  const std::vector<Copy>& copies() const { return copies_; }
  // The copy whose bytes or margins contain the address.
  std::optional<uint32_t> find(const void* address) const;
  // Copies these bytes, given as offsets, back to the original.
  void copyBack(uint32_t copy, const ByteRanges& written) const;

 private:
  MarginCopies() = default;
  std::vector<Copy> copies_;
};

}  // namespace mnk::host
