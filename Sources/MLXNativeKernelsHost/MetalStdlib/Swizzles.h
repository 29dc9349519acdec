// The swizzle members of vectors: MNK_HOST_SWIZZLES_2, _3 and _4 list those of a vector with that many components. All
// swizzles of two and three components, and common ones of four.
#pragma once

#define MNK_HOST_INDEX_x 0
#define MNK_HOST_INDEX_y 1
#define MNK_HOST_INDEX_z 2
#define MNK_HOST_INDEX_w 3

#define MNK_HOST_SWIZZLE2(a, b) Swizzle<T, MNK_HOST_INDEX_##a, MNK_HOST_INDEX_##b> a##b;
#define MNK_HOST_SWIZZLE3(a, b, c) Swizzle<T, MNK_HOST_INDEX_##a, MNK_HOST_INDEX_##b, MNK_HOST_INDEX_##c> a##b##c;
#define MNK_HOST_SWIZZLE4(a, b, c, d) \
  Swizzle<T, MNK_HOST_INDEX_##a, MNK_HOST_INDEX_##b, MNK_HOST_INDEX_##c, MNK_HOST_INDEX_##d> a##b##c##d;

// Every last component after the given ones.
#define MNK_HOST_LAST2_2(a) MNK_HOST_SWIZZLE2(a, x) MNK_HOST_SWIZZLE2(a, y)
#define MNK_HOST_LAST2_3(a) MNK_HOST_LAST2_2(a) MNK_HOST_SWIZZLE2(a, z)
#define MNK_HOST_LAST2_4(a) MNK_HOST_LAST2_3(a) MNK_HOST_SWIZZLE2(a, w)
#define MNK_HOST_LAST3_2(a, b) MNK_HOST_SWIZZLE3(a, b, x) MNK_HOST_SWIZZLE3(a, b, y)
#define MNK_HOST_LAST3_3(a, b) MNK_HOST_LAST3_2(a, b) MNK_HOST_SWIZZLE3(a, b, z)
#define MNK_HOST_LAST3_4(a, b) MNK_HOST_LAST3_3(a, b) MNK_HOST_SWIZZLE3(a, b, w)

// Every swizzle that starts with the given component.
#define MNK_HOST_FIRST_2(a) MNK_HOST_LAST2_2(a) MNK_HOST_LAST3_2(a, x) MNK_HOST_LAST3_2(a, y)
#define MNK_HOST_FIRST_3(a) MNK_HOST_LAST2_3(a) MNK_HOST_LAST3_3(a, x) MNK_HOST_LAST3_3(a, y) MNK_HOST_LAST3_3(a, z)
#define MNK_HOST_FIRST_4(a) \
  MNK_HOST_LAST2_4(a)       \
  MNK_HOST_LAST3_4(a, x) MNK_HOST_LAST3_4(a, y) MNK_HOST_LAST3_4(a, z) MNK_HOST_LAST3_4(a, w)

// clang-format would misalign these lists.
// clang-format off
#define MNK_HOST_FOURS_2                                                                    \
  MNK_HOST_SWIZZLE4(x, x, x, x) MNK_HOST_SWIZZLE4(y, y, y, y) MNK_HOST_SWIZZLE4(x, y, x, y) \
  MNK_HOST_SWIZZLE4(x, x, y, y) MNK_HOST_SWIZZLE4(y, x, y, x)
#define MNK_HOST_FOURS_4                                                                    \
  MNK_HOST_SWIZZLE4(z, z, z, z) MNK_HOST_SWIZZLE4(w, w, w, w) MNK_HOST_SWIZZLE4(x, y, z, w) \
  MNK_HOST_SWIZZLE4(w, z, y, x) MNK_HOST_SWIZZLE4(y, z, w, x) MNK_HOST_SWIZZLE4(z, w, x, y) \
  MNK_HOST_SWIZZLE4(w, x, y, z) MNK_HOST_SWIZZLE4(y, x, w, z) MNK_HOST_SWIZZLE4(x, z, y, w) \
  MNK_HOST_SWIZZLE4(z, w, z, w) MNK_HOST_SWIZZLE4(z, z, w, w) MNK_HOST_SWIZZLE4(x, x, z, z) \
  MNK_HOST_SWIZZLE4(y, y, w, w) MNK_HOST_SWIZZLE4(x, z, x, z) MNK_HOST_SWIZZLE4(y, w, y, w)
// clang-format on

#define MNK_HOST_SWIZZLES_2 MNK_HOST_FIRST_2(x) MNK_HOST_FIRST_2(y) MNK_HOST_FOURS_2
#define MNK_HOST_SWIZZLES_3 MNK_HOST_FIRST_3(x) MNK_HOST_FIRST_3(y) MNK_HOST_FIRST_3(z) MNK_HOST_FOURS_2
#define MNK_HOST_SWIZZLES_4 \
  MNK_HOST_FIRST_4(x) MNK_HOST_FIRST_4(y) MNK_HOST_FIRST_4(z) MNK_HOST_FIRST_4(w) MNK_HOST_FOURS_2 MNK_HOST_FOURS_4
