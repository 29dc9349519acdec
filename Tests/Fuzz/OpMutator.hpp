// Changes one field of an op, whatever the op is: a tensor's shape, dtype, place or device, a number, or what is there
// at all. Some changes leave the op valid.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "Fields.hpp"
#include "Numbers.hpp"

namespace mnk::fuzz {

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

  void visit(Tensor& tensor) {
    addTensorChanges(tensor);
    add([&] { tensor = Tensor(); });
  }
  // A view without a tensor is none.
  void visit(HeadsView& view) {
    addTensorChanges(view.tensor);
    visit(view.layout);
    if (view.strides) visit(*view.strides);
    add([&] { view.strides = view.strides ? std::nullopt : std::optional(view.resolved()); });
  }
  void visit(bool& field) {
    add([&] { field = !field; });
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void visit(Number& field) {
    if constexpr (std::is_same_v<Number, uint64_t>) numbers_.push_back(&field);
    for (int weight = 0; weight < 2; ++weight) add([&] { change(field); });
  }
  template <typename Struct>
  requires HasFields<Struct>
  void visit(Struct& of) {
    std::apply([&](auto&... fields) { (visit(fields), ...); }, fieldsOf(of));
  }
  template <typename T>
  void visit(std::optional<T>& field) {
    if (field) {
      add([&] { field.reset(); });
      return visitHeld(*field);
    }
    add([&] {
      if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, HeadsView>) {
        field = anyTensor();
      } else if constexpr (std::is_same_v<T, AttentionPartials>) {
        field = T{anyTensor(), anyTensor()};
      } else {
        field.emplace();
      }
    });
  }
  template <typename... Ts>
  void visit(std::variant<Ts...>& field) {
    std::visit([&](auto& held) { visitHeld(held); }, field);
  }
  void visit(std::shared_ptr<const PositionSource>&) {}  // programs of cache calls draw those
  // What may be left out is left out as a whole.
  template <typename T>
  void visitHeld(T& held) {
    if constexpr (std::is_same_v<T, Tensor>) {
      addTensorChanges(held);
    } else {
      visit(held);
    }
  }
  template <typename T, size_t count>
  void visit(std::array<T, count>& field) {
    for (T& element : field) visit(element);
  }
  template <typename T>
  void visit(std::vector<T>& field) {
    add([&] { field.push_back(field.empty() ? T{} : field.back()); });
    if (field.empty()) return;
    add([&] { field.pop_back(); });
    visit(field[random_.below(field.size())]);
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
  void add(Tensor& tensor) { text_ += tensor ? arena_.specOf(tensor).text() : "no tensor"; }
  void add(HeadsView& view) {
    add(view.tensor), text_ += " layout ";
    add(view.layout), text_ += " strides ";
    add(view.strides);
  }
  void add(std::shared_ptr<const PositionSource>&) { text_ += "those of a source"; }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void add(Number& number) { text_ += fmt::format("{}", number); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void add(Enum& number) { text_ += fmt::format("{}", static_cast<uint32_t>(number)); }
  template <typename Struct>
  requires HasFields<Struct>
  void add(Struct& of) {
    text_ += "{";
    std::apply([&](auto&... fields) { ((add(fields), text_ += "; "), ...); }, fieldsOf(of));
    text_ += "}";
  }
  template <typename T>
  void add(std::optional<T>& field) {
    field ? add(*field) : void(text_ += "none");
  }
  template <typename... Ts>
  void add(std::variant<Ts...>& field) {
    std::visit([&](auto& held) { add(held); }, field);
  }
  template <typename List>
  requires requires(List& list) { list.begin(); }
  void add(List& list) {
    text_ += "[";
    for (auto& element : list) add(element), text_ += ", ";
    text_ += "]";
  }

  const Arena& arena_;
  std::string text_;
};

}  // namespace mnk::fuzz
