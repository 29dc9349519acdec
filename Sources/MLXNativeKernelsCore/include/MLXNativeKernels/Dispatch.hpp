// What a device is asked to run, as plain data: a Dispatch is one kernel launch, a Plan is what an op needs.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "MLXNativeKernels/Tensor.hpp"

namespace mnk {

class Library;

using Size3 = std::array<uint32_t, 3>;

enum class ConstantType : uint8_t { boolean, i32, u32, f32 };
std::string_view name(ConstantType type);

// A value that is fixed when a pipeline is made.
struct FunctionConstant {
  uint32_t index = 0;
  ConstantType type = ConstantType::boolean;
  uint32_t bits = 0;

  FunctionConstant(uint32_t at, bool value) : FunctionConstant(at, ConstantType::boolean, value) {}
  FunctionConstant(uint32_t at, int32_t value)
      : FunctionConstant(at, ConstantType::i32, static_cast<uint32_t>(value)) {}
  FunctionConstant(uint32_t at, uint32_t value) : FunctionConstant(at, ConstantType::u32, value) {}
  FunctionConstant(uint32_t at, float value)
      : FunctionConstant(at, ConstantType::f32, std::bit_cast<uint32_t>(value)) {}
  // The value's own bits; of a bool any that are not 0 are true.
  FunctionConstant(uint32_t at, ConstantType type, uint32_t bits)
      : index(at), type(type), bits(type == ConstantType::boolean ? bits != 0 : bits) {}
  auto operator<=>(const FunctionConstant&) const = default;
};

// Names a pipeline. A null library is the one this package ships.
struct KernelKey {
  std::shared_ptr<Library> library;
  std::string function;
  std::vector<FunctionConstant> constants;

  std::string text() const;  // "kvCacheConvert_f32_f16 {hasValues, isVectorized}"
};

// Rows of bytes at a fixed distance; offsets count from the binding's start. One row is a plain range.
struct Region {
  uint64_t offset = 0;
  uint64_t rowBytes = 0;
  uint64_t rowStride = 0;
  uint64_t rows = 1;

  uint64_t byteCount() const { return rowBytes * rows; }
  uint64_t end() const { return rows == 0 ? offset : offset + rowStride * (rows - 1) + rowBytes; }
};

// A part of a buffer at a kernel's buffer index, with the bytes that the kernel reads and writes in it.
struct Binding {
  uint32_t index = 0;
  std::shared_ptr<Buffer> buffer;  // null: the plan's scratch memory, or its zeroed memory
  uint64_t offset = 0;
  uint64_t length = 0;
  std::vector<Region> reads;
  std::vector<Region> writes;
  bool isZeroed = false;  // without a buffer: which of the two

  // All of a tensor, with the given access to all of its bytes.
  static Binding whole(uint32_t index, const Tensor& tensor, Access access);
};

// Bytes that are sent with the dispatch, for an argument that is only read.
struct InlineBytes {
  uint32_t index = 0;
  std::vector<std::byte> bytes;
  bool isValue = false;  // whether they are one value of the parameter's type, which then has exactly their size

  // One value of the parameter's type. A list for a parameter that points to several is `ofAll`.
  template <typename T>
  static InlineBytes of(uint32_t index, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    return {index, {begin, begin + sizeof value}, true};
  }
  template <typename T>
  static InlineBytes ofAll(uint32_t index, const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* begin = reinterpret_cast<const std::byte*>(values.data());
    return {index, {begin, begin + values.size() * sizeof(T)}, false};
  }
};

struct ThreadgroupMemory {
  uint32_t index = 0;
  uint32_t bytes = 0;
};

struct Grid {
  enum class Unit : uint8_t {
    threads,       // exactly these threads; groups at the edge are smaller
    threadgroups,  // whole threadgroups of the given size
  };
  Unit unit = Unit::threads;
  Size3 extent{1, 1, 1};
  Size3 threadgroup{0, 0, 0};  // zeros: the encoder chooses (only with threads)
  // Of a threadgroup with one axis: if the pipeline allows fewer threads, it gets as many whole simdgroups as that, but
  // no fewer threads than these. 0: it keeps its size.
  uint32_t minThreads = 0;
  // Whether each threadgroup is then replaced by several, next to each other on the last axis: as many as have its
  // share of multiples of `minThreads` threads among them.
  bool isShared = false;

  bool isEmpty() const { return extent[0] == 0 || extent[1] == 0 || extent[2] == 0; }
};

struct Dispatch {
  KernelKey kernel;
  std::string kind;  // the op it belongs to; counters are kept per kind
  std::vector<Binding> buffers;
  std::vector<InlineBytes> inlines;
  std::vector<ThreadgroupMemory> threadgroupMemory;
  Grid grid;
  // Bytes moved, if they differ from what the declared regions cover: fewer, because only the kernel knows indices, or
  // more, because threadgroups read the same.
  std::optional<uint64_t> bytesRead;
  std::optional<uint64_t> bytesWritten;
  bool mayReadUndefined = false;  // it is only timed, so it may read memory that nothing has written

  uint64_t countedBytesRead() const;
  uint64_t countedBytesWritten() const;
  std::string text() const;
};

struct Plan {
  std::string op;
  std::vector<Dispatch> dispatches;
  uint64_t scratchBytes = 0;
  uint64_t zeroedBytes = 0;        // of scratch memory that is zero when the plan starts
  std::string warning = {};        // why it runs more dispatches than needed, and what avoids it; empty: it does not
  bool hasFixedPositions = false;  // rotates by numbers, which a recording that appends to a cache cannot use

  // Adds what another plan runs. Both use the same scratch memory, one after the other, and their own zeroed memory.
  void append(Plan next);

  std::string text() const;
};

}  // namespace mnk
