// The memory that a dispatch binds, moved to copies with margins so wide that a wrong index lands in them: an access
// out of bounds does no harm there and is seen even where another buffer follows. Bindings that overlap share a copy.
#pragma once
#include <optional>
#include <vector>

#include "DispatchRunner.hpp"
#include "Support/ByteRanges.hpp"

namespace mnk::host {

// There is not enough of it for `what`.
Error noMemoryToCheck(const DispatchJob& job, std::string_view what);

class MarginCopies {
 public:
  // Changes the arguments' addresses to those of the copies.
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
  // The copy whose bytes or margins hold the address.
  std::optional<uint32_t> find(const void* address) const;
  // Takes over bytes of a copy, given as offsets.
  void copyBack(uint32_t copy, const ByteRanges& written) const;

 private:
  MarginCopies() = default;
  std::vector<Copy> copies_;
};

}  // namespace mnk::host
