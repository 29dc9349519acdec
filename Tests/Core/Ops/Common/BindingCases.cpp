#include "Ops/Common/BindingCases.hpp"

#include <algorithm>
#include <cstring>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Ops/FlashDecode/FlashDecodeCase.hpp"
#include "Ops/Hadamard/HadamardRun.hpp"
#include "Ops/KVCacheDequantize/KVCacheDequantizeRun.hpp"
#include "Ops/KVCacheQuantize/KVCacheQuantizeCase.hpp"
#include "Ops/KVCacheWrite/KVCacheWriteCase.hpp"
#include "Ops/MultiRoPE/MultiRoPECase.hpp"

namespace mnk::test {

namespace {

template <typename Case>
auto opOf(const Case& one, BindingMemory& memory) {
  return makeOp(one, [&](std::string_view, DType dtype, const Shape& shape, uint64_t shift) {
    return memory.make(dtype, shape, shift);
  });
}

struct List {
  std::vector<BindingCase> cases;

  template <typename MakeOp>
  void add(std::string_view name, const MakeOp& make) {
    using Op = std::invoke_result_t<MakeOp, BindingMemory&>;
    cases.push_back(
        {Op::name, fmt::format("{}, {}", Op::name, name), [=](BindingMemory& memory) { return AnyOp(make(memory)); }});
  }

  // Every `stride`-th of an op's cases: its own tests run them all.
  template <typename Case>
  void add(const std::vector<Case>& all, size_t stride) {
    for (size_t i = 0; i < all.size(); i += stride) {
      add(all[i].name, [one = all[i]](BindingMemory& memory) { return opOf(one, memory); });
    }
  }
};

void addStores(List& list) {
  list.add(drawnWrites(200), 1);
  list.add(drawnQuantizes(150), 1);
  list.add(probeCases(), 3);
}

void addOptions(List& list) {
  for (const NumberOption& option : numberOptions()) {
    std::vector<double> numbers = option.valid;
    numbers.insert(numbers.end(), option.invalid.begin(), option.invalid.end());
    for (const double number : numbers) {
      // Merges need splits.
      FlashDecodeCase one{.name = fmt::format("{} {}", option.name, number), .options = {.splits = 3}};
      option.set(one.options, number);
      list.add(std::vector{one}, 1);
    }
  }
}

void addDequantize(List& list) {
  Seeded random(5, 5);
  std::vector<KVCacheDequantizeCase> cases;
  for (uint64_t i = 0; i < 40; ++i) {
    cases.push_back(drawnDequantize(random));
    cases.back().name = fmt::format("case {}", i);
  }
  list.add(cases, 1);
  // Errors are those of the core, too.
  list.add("past the end", [one = cases[0]](BindingMemory& memory) {
    KVCacheDequantize op = opOf(one, memory);
    op.position = UINT64_MAX;
    return op;
  });
  list.add("nothing", [one = cases[0]](BindingMemory& memory) {
    KVCacheDequantize op = opOf(one, memory);
    op.keys = op.values = {};
    return op;
  });
}

void addHadamard(List& list) {
  using Signs = std::optional<KVCodec::Name>;
  std::vector<HadamardCase> cases;
  for (const bool isInPlace : {false, true}) {
    for (const bool isInverse : {false, true}) {
      for (const Signs signs : {Signs(), Signs(KVCodec::Name::turbo), Signs(KVCodec::Name::mlx1)}) {
        cases.push_back({.name = fmt::format("{}{}, signs {}", isInPlace ? "in place" : "out of place",
                                             isInverse ? ", inverse" : "", signs ? name(*signs) : "none"),
                         .length = 256,
                         .from = DType::f16,
                         .into = isInPlace ? std::nullopt : std::optional(DType::f32),
                         .signs = signs,
                         .isInverse = isInverse,
                         .shift = 1});
      }
    }
  }
  list.add(cases, 1);
}

void addMerge(List& list) {
  for (const std::string_view kind : {"partials", "into", "logarithms", "sinks"}) {
    list.add(kind, [=](BindingMemory& memory) {
      const auto tensor = [&](std::initializer_list<uint64_t> extents) { return memory.make(DType::f32, extents); };
      MergePartials op{.parts = {tensor({3, 2, 4, 32}), tensor({3, 2, 4, 2})}};
      if (kind == "partials") op.results.partials = AttentionPartials{tensor({2, 4, 32}), tensor({2, 4, 2})};
      if (kind != "partials") op.results.output = tensor({2, 4, 32});
      if (kind == "logarithms" || kind == "sinks") op.results.logSumExp = tensor({2, 4});
      if (kind == "sinks") op.sinks = tensor({4});
      return op;
    });
  }
}

template <typename... Ops>
std::vector<std::string_view> namesOf(const std::variant<Ops...>*) {
  return {Ops::name...};
}

PlanSummary summaryOf(const Plan& plan) {
  PlanSummary summary{.text = plan.text(), .scratchBytes = plan.scratchBytes};
  for (const Dispatch& one : plan.dispatches) {
    summary.dispatches.push_back(
        {one.kernel.function, one.grid.extent, one.countedBytesRead(), one.countedBytesWritten()});
  }
  return summary;
}

void expectSameDispatch(const Dispatch& got, const Dispatch& expected, const Dispatch& planned) {
  EXPECT_EQ(dispatchLine(got, SIZE_MAX), dispatchLine(expected, SIZE_MAX));
  EXPECT_EQ(got.kind, expected.kind);
  EXPECT(got.kernel.library == expected.kernel.library && got.kernel.constants == expected.kernel.constants);
  EXPECT(got.grid.threadgroup == expected.grid.threadgroup);
  EXPECT(std::ranges::equal(got.threadgroupMemory, expected.threadgroupMemory,
                            [](const auto& a, const auto& b) { return a.index == b.index && a.bytes == b.bytes; }));
  for (size_t i = 0; i < std::min(got.buffers.size(), planned.buffers.size()); ++i) {
    EXPECT(got.buffers[i].buffer == expected.buffers[i].buffer || !planned.buffers[i].buffer);
  }
}

}  // namespace

std::vector<std::string_view> opNames() {
  return namesOf(static_cast<const AnyOp*>(nullptr));
}

Tensor BindingMemory::make(DType dtype, const Shape& shape, uint64_t shift) {
  const uint64_t count = shape.elementCount(), size = byteSize(dtype);
  const auto buffer = REQUIRE(device_->makeBuffer(count * size + shift));
  const Tensor tensor = REQUIRE(Tensor::over(buffer, dtype, shape, shift));
  std::vector<std::byte> bytes(tensor.byteCount());
  const bool isFloat = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  for (uint64_t i = 0; i < count; ++i) {
    state_ = state_ * 1664525u + 1013904223u;
    const uint32_t random = state_ >> 16;
    // Indices and positions differ from each other, so that no two rows go to one slot.
    const uint64_t bits = isFloat ? nearestBits(dtype, random / 32768.0 - 1) : size == 4 ? i : random;
    std::memcpy(&bytes[i * size], &bits, size);
  }
  REQUIRE(tensor.write(bytes));
  tensors_.push_back(tensor);
  return tensor;
}

std::vector<std::byte> BindingMemory::bytes() const {
  std::vector<std::byte> all;
  for (const Tensor& tensor : tensors_) {
    const size_t begin = all.size();
    all.resize(begin + tensor.byteCount());
    REQUIRE(tensor.read(std::span(all).subspan(begin)));
  }
  return all;
}

const std::vector<BindingCase>& bindingCases() {
  static const std::vector<BindingCase> all = [] {
    List list;
    addStores(list);
    addDequantize(list);
    addHadamard(list);
    list.add(rope::drawnCases(300), 1);
    list.add(rope::edgeCases(), 5);
    std::vector<FlashDecodeCase> attentions = allAttentions();
    // An automatic choice may probe the device first, which is a submission of its own.
    for (FlashDecodeCase& attend : attentions) attend.options.kernel = AttentionOptions::Kernel::vector;
    list.add(attentions, 3);
    addOptions(list);
    addMerge(list);
    return std::move(list.cases);
  }();
  return all;
}

void expectSameError(const Error* got, const Error* expected) {
  const auto partsOf = [](const Error* error) {
    if (!error) return std::string("no error");
    return fmt::format("{} {} {}; {}; {}; {}; {}", static_cast<int>(error->code), error->retryable, error->op,
                       error->what, error->got, error->expected, error->fix);
  };
  EXPECT_EQ(partsOf(got), partsOf(expected));
}

void expectSamePlan(const Result<PlanSummary>& got, const Result<Plan>& expected) {
  expectSameError(errorOf(got), errorOf(expected));
  if (!got || !expected) return;
  EXPECT_EQ(got->text, expected->text());
  EXPECT(*got == summaryOf(*expected));
}

void expectSameDispatches(const FakeDevice::Recorded& got, const FakeDevice::Recorded& expected,
                          const std::vector<Dispatch>& planned) {
  EXPECT_EQ(got.trace, expected.trace);
  size_t index = 0;
  for (const Dispatch& plan : planned) {
    if (plan.grid.isEmpty()) continue;  // not recorded
    if (index >= got.dispatches.size() || index >= expected.dispatches.size()) break;
    expectSameDispatch(got.dispatches[index].dispatch, expected.dispatches[index].dispatch, plan);
    ++index;
  }
  EXPECT_EQ(got.dispatches.size(), index);
  EXPECT_EQ(expected.dispatches.size(), index);
}

}  // namespace mnk::test
