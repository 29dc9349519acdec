// Structs shared by host and shaders. One list of FIELD(type, name) defines the struct on both sides and asserts that
// it has no padding, so that the order of the fields determines their offsets. Field types are fixed-size numbers and
// other such structs.
#pragma once
#ifdef __METAL_VERSION__
#include <metal_stdlib>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#define MNK_FIELD(type, name) type name;
#define MNK_FIELD_BYTES(type, name) +sizeof(type)
#define MNK_STRUCT(name, FIELDS) \
  struct name {                  \
    FIELDS(MNK_FIELD)            \
  };                             \
  static_assert(sizeof(name) == 0 FIELDS(MNK_FIELD_BYTES), #name " has padding: its sides may differ")
