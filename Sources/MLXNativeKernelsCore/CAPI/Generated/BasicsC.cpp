// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

Result<void> read(DType& into, mnk_dtype from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_F32:
      into = DType::f32;
      return {};
    case MNK_F16:
      into = DType::f16;
      return {};
    case MNK_BF16:
      into = DType::bf16;
      return {};
    case MNK_U8:
      into = DType::u8;
      return {};
    case MNK_U16:
      into = DType::u16;
      return {};
    case MNK_U32:
      into = DType::u32;
      return {};
    case MNK_I32:
      into = DType::i32;
      return {};
  }
  return unknownNumber("mnk_dtype", from, "MNK_F32 to MNK_I32");
}

Result<void> read(Access& into, mnk_access from) {
  switch (static_cast<uint32_t>(from)) {
    case MNK_READ:
      into = Access::read;
      return {};
    case MNK_WRITE:
      into = Access::write;
      return {};
    case MNK_READ_WRITE:
      into = Access::readWrite;
      return {};
  }
  return unknownNumber("mnk_access", from, "MNK_READ to MNK_READ_WRITE");
}

}  // namespace mnk::c
