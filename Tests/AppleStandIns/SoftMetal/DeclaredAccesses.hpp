// The declarations of a dispatch in its debug group:
//   "KVCacheWrite kvCacheMove_16 binds 1:512 3:4096 reads 1:0+512 writes 3:1024+64*8@256"
// is an op (any words), a kernel, the lengths of bindings by buffer index, and regions
// INDEX:OFFSET+ROWBYTES[*ROWS@STRIDE] relative to a binding's start. "writes some" means that not all of those bytes
// are written.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "MLXNativeKernels/Dispatch.hpp"

namespace softmetal {

struct DeclaredAccesses {
  std::vector<std::string> title;  // the words before "binds"

  bool names(std::string_view kernel) const;
  // The words before the kernel's name.
  std::string op(std::string_view kernel) const;
  std::map<uint32_t, uint64_t> lengths;
  std::map<uint32_t, std::vector<mnk::Region>> reads, writes;
  bool writesSome = false;
};

struct GroupText {
  bool declares = false;                     // contains the word "binds"
  std::optional<DeclaredAccesses> accesses;  // empty if it has declarations that cannot be parsed
};
GroupText readGroup(std::string_view text);

}  // namespace softmetal
