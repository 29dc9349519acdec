// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

namespace mnk::objc {

mnk_dtype enumFrom(Reading &reading, MNKElementType value, std::string_view name) {
  return reading.choice<mnk_dtype>(value, {MNK_F32, MNK_F16, MNK_BF16, MNK_U8, MNK_U16, MNK_U32, MNK_I32}, name,
                                   "MNKElementType");
}

mnk_access enumFrom(Reading &reading, MNKAccess value, std::string_view name) {
  return reading.choice<mnk_access>(value, {MNK_READ, MNK_WRITE, MNK_READ_WRITE}, name, "MNKAccess");
}

}  // namespace mnk::objc
