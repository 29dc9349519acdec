// Changes one field of an op, whatever the op is: a tensor's shape, dtype, place or device, a number, or what is there
// at all. Some changes leave the op valid.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "Arena.hpp"
#include "CAPI/CStructs.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "MLXNativeKernels/mnk.h"

namespace mnk::fuzz {

// The fields of ops and of their structs in the C API, in their order and without their names: a field that is added is
// mutated like all others. A list that is too short or too long for its type does not compile.
#define FIELDS(Type, ...)          \
  inline auto fieldsOf(Type& of) { \
    auto& [__VA_ARGS__] = of;      \
    return std::tie(__VA_ARGS__);  \
  }

#include "Generated/Fields.inc"

FIELDS(RotaryPositions::List, a, b)
inline auto fieldsOf(RotaryPositions& of) {
  return std::tie(of.source);
}

FIELDS(mnk_row_indices, a, b, c)
FIELDS(mnk_rotary_offsets, a, b, c)
FIELDS(mnk_rotary_positions, a, b, c, d, e, f, g, h, i, j)
FIELDS(mnk_cache_step, a, b, c, d, e, f, g, h, i, j, k, l)

#undef FIELDS

template <typename Struct>
concept HasFields = requires(Struct& of) {
  fieldsOf(of);
};

float wildNumber(test::Seeded& random);

// Calls a function for every field of an op, and for every field of those.
template <typename Field, typename Visit>
void forEachField(Field& field, const Visit& visit) {
  visit(field);
  if constexpr (HasFields<Field>) {
    std::apply([&](auto&... fields) { (forEachField(fields, visit), ...); }, fieldsOf(field));
  } else if constexpr (requires { field.has_value(); }) {
    if (field) forEachField(*field, visit);
  } else if constexpr (requires { field.valueless_by_exception(); }) {
    std::visit([&](auto& held) { forEachField(held, visit); }, field);
  } else if constexpr (std::is_array_v<Field>) {
    for (auto& element : field) forEachField(element, visit);
  } else if constexpr (std::is_pointer_v<Field>) {
    using Pointed = std::remove_const_t<std::remove_pointer_t<Field>>;
    if constexpr (HasFields<Pointed>) {
      if (field) forEachField(const_cast<Pointed&>(*field), visit);
    }
  }
}

// All tensors of an op that have memory.
template <typename Op>
std::vector<Tensor*> tensorsOf(Op& op) {
  std::vector<Tensor*> all;
  forEachField(op, [&](auto& field) {
    if constexpr (std::is_same_v<decltype(field), Tensor&>) {
      if (field) all.push_back(&field);
    }
  });
  return all;
}
// Whether two are the same elements.
bool areSame(const Tensor& one, const Tensor& other);
// Whether two that share memory do not agree on what is in it.
bool areMixed(const std::vector<Tensor>& tensors);

// Numbers that are 0 in C mean the default, and a list that has no address is none. Throws DoesNotFit where only
// another call could be expressed.
template <typename Op>
void makeExpressibleInC(Op& op) {
  forEachField(op, [](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, KVCodec>) {
      if (field.scaleFactor == 0) field.scaleFactor = 1;
    } else if constexpr (std::is_same_v<Field, KVQuantizeOptions>) {
      if (field.candidates == 0) field.candidates = KVQuantizeOptions().candidates;
    } else if constexpr (std::is_same_v<Field, HeadsView::Strides>) {
      if (field.sequences == 0) throw Arena::DoesNotFit{};
    } else if constexpr (std::is_same_v<Field, RotaryPositions::List>) {
      if (field.axes == 0) field.axes = 1;
    }
  });
}

class OpMutator {
 public:
  OpMutator(Arena& arena, test::Seeded& random) : arena_(arena), random_(random) {}

  template <typename Op>
  void mutate(Op& op) {
    changes_.clear(), numbers_.clear();
    tensors_ = tensorsOf(op);
    visit(op);
    for (int weight = 0; weight < 6; ++weight) changes_.push_back([this] { changeAnExtentEverywhere(); });
    changes_[random_.below(changes_.size())]();
  }

 private:
  template <typename Change>
  void add(Change change) {
    changes_.push_back(change);
  }

  // What is held may be left out as a whole, with whatever holds it.
  template <typename Field>
  void visit(Field& field, bool isHeld = false) {
    if constexpr (std::is_same_v<Field, Tensor>) {
      addTensorChanges(field);
      if (!isHeld) add([&] { field = Tensor(); });
    } else if constexpr (std::is_same_v<Field, HeadsView>) {  // a view without a tensor is none
      addTensorChanges(field.tensor);
      visit(field.layout);
      if (field.strides) visit(*field.strides);
      add([&] { field.strides = field.strides ? std::nullopt : std::optional(field.resolved()); });
    } else if constexpr (std::is_same_v<Field, bool>) {
      add([&] { field = !field; });
    } else if constexpr (std::is_arithmetic_v<Field> || std::is_enum_v<Field>) {
      if constexpr (std::is_same_v<Field, uint64_t>) numbers_.push_back(&field);
      for (int weight = 0; weight < 2; ++weight) add([&] { change(field); });
    } else if constexpr (HasFields<Field>) {
      std::apply([&](auto&... fields) { (visit(fields), ...); }, fieldsOf(field));
    } else if constexpr (requires { field.has_value(); }) {
      if (!field) return add([&] { field = something<typename Field::value_type>(); });
      add([&] { field.reset(); });
      visit(*field, true);
    } else if constexpr (requires { field.valueless_by_exception(); }) {
      std::visit([&](auto& held) { visit(held, true); }, field);
    } else if constexpr (requires { field.pop_back(); }) {
      add([&] { field.push_back(field.empty() ? typename Field::value_type{} : field.back()); });
      if (field.empty()) return;
      add([&] { field.pop_back(); });
      visit(field[random_.below(field.size())]);
    } else if constexpr (requires { field.begin(); }) {
      for (auto& element : field) visit(element);
    }  // programs of cache calls draw sources of positions
  }
  template <typename T>
  T something() {
    if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, HeadsView>) {
      return anyTensor();
    } else if constexpr (std::is_same_v<T, AttentionPartials>) {
      return {anyTensor(), anyTensor()};
    } else {
      return {};
    }
  }

  template <typename Number>
  void change(Number& number) {
    if constexpr (std::is_enum_v<Number>) {
      number = static_cast<Number>(coin(random_, 3, 4) ? random_.below(4)
                                                       : oneOf<uint64_t>(random_, {4, 8, 24, 40, 1u << 31}));
    } else if constexpr (std::is_floating_point_v<Number>) {
      number = coin(random_, 1, 3) ? 0 : wildNumber(random_);
    } else {
      const auto own = static_cast<uint64_t>(number);
      number = static_cast<Number>(coin(random_, 1, 2) ? own + oneOf<uint64_t>(random_, {1, UINT64_MAX})
                                                       : edge(random_, {own, 1, 3, 12, 64, 512, 1025}));
    }
  }

  void addTensorChanges(Tensor& tensor);
  void changeTensor(Tensor& tensor);
  // What is equal may be meant to be: one extent of one tensor, and all that are like it.
  void changeAnExtentEverywhere();
  Tensor anyTensor();
  // The tensor of a spec that may need other extents, or another place.
  Tensor made(TensorSpec spec);

  Arena& arena_;
  test::Seeded& random_;
  std::vector<std::function<void()>> changes_;
  std::vector<Tensor*> tensors_;
  std::vector<uint64_t*> numbers_;
};

// Changes one field of an op's struct in the C API to what no C++ op has: a missing handle or list, a number that no
// enum names, a count that no list has. Some changes leave the struct fit for use.
template <typename Struct>
void mutateStruct(Struct& of, test::Seeded& random) {
  std::vector<std::function<void()>> changes;
  forEachField(of, [&](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_pointer_v<Field>) {
      if (field) changes.push_back([&] { field = nullptr; });
    } else if constexpr (std::is_enum_v<Field>) {
      changes.push_back([&] {
        field = test::number<Field>(static_cast<uint32_t>(coin(random, 1, 2) ? 2 + random.below(4) : random.next()));
      });
    } else if constexpr (std::is_same_v<Field, bool>) {
      changes.push_back([&] { field = !field; });
    } else if constexpr (std::is_floating_point_v<Field>) {
      changes.push_back([&] { field = wildNumber(random); });
    } else if constexpr (std::is_integral_v<Field>) {
      // No list is as long, so that it must be refused before it is read.
      changes.push_back([&] {
        field = static_cast<Field>((uint64_t{1} << (sizeof(Field) * 8 - 1 - random.below(8))) + random.below(3));
      });
    }
  });
  changes[random.below(changes.size())]();
}

// The values of all fields.
class OpText {
 public:
  template <typename Op>
  static std::string of(Op op, const Arena& arena) {
    OpText text(arena);
    text.add(op);
    return text.text_;
  }

 private:
  explicit OpText(const Arena& arena) : arena_(arena) {}
  template <typename Field>
  void add(Field& field) {
    if constexpr (std::is_same_v<Field, Tensor>) {
      text_ += field ? arena_.specOf(field).text() : "no tensor";
    } else if constexpr (std::is_same_v<std::remove_const_t<std::remove_pointer_t<Field>>, mnk_tensor>) {
      text_ += field ? arena_.specOf(field->tensor).text() : "no tensor";
    } else if constexpr (HasFields<Field>) {
      text_ += "{";
      std::apply([&](auto&... fields) { ((add(fields), text_ += "; "), ...); }, fieldsOf(field));
      text_ += "}";
    } else if constexpr (requires { field.has_value(); }) {
      field ? add(*field) : void(text_ += "none");
    } else if constexpr (requires { field.valueless_by_exception(); }) {
      std::visit([&](auto& held) { add(held); }, field);
    } else if constexpr (requires { std::begin(field); }) {
      text_ += "[";
      for (auto& element : field) add(element), text_ += ", ";
      text_ += "]";
    } else if constexpr (std::is_arithmetic_v<Field>) {
      text_ += fmt::format("{}", field);
    } else if constexpr (std::is_enum_v<Field>) {
      text_ += fmt::format("{}", static_cast<uint32_t>(field));
    } else {
      text_ += field ? "given" : "none";  // a pointer
    }
  }

  const Arena& arena_;
  std::string text_;
};

}  // namespace mnk::fuzz
