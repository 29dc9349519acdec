// Changes one field of an op's struct in the C API to what no C++ op has: a missing handle or list, a wrong size, a
// number that no enum names, a count that no list has.
#pragma once
#include <cstring>
#include <functional>
#include <vector>

#include "CAPI/CStructs.hpp"
#include "OpMutator.hpp"

namespace mnk::fuzz {

class CMutator {
 public:
  explicit CMutator(test::Seeded& random) : random_(random) {}

  // Returns whether the struct must be refused now; other changes may leave it fit for use.
  template <typename Struct>
  bool mutate(test::Followed<Struct>& op) {
    constexpr size_t own = sizeof(Struct);
    if (coin(random_, 1, 8)) {
      op.value.size = oneOf<size_t>(random_, {0, own - 1, own - 8, 2 * own + 1, UINT64_MAX});
      return true;
    }
    if (coin(random_, 1, 8)) {
      op.value.size = own + 1 + random_.below(own);
      op.tail[random_.below(op.value.size - own)] = 1;
      return true;
    }
    visit(op.value);
    changes_[random_.below(changes_.size())]();
    return false;
  }

 private:
  // Behind a struct that nothing holds.
  template <typename Struct>
  void addTail(Struct& of) {
    changes_.push_back([&] {
      of.size = sizeof of + 1 + random_.below(sizeof of);
      if (coin(random_, 3, 4))
        reinterpret_cast<test::Followed<Struct>&>(of).tail[random_.below(of.size - sizeof of)] = 1;
    });
  }

  template <typename Struct>
  requires HasFields<Struct>
  void visit(Struct& of) {
    std::apply([&](auto&... fields) { (visit(fields), ...); }, fieldsOf(of));
    if constexpr (requires { of.size; }) {
      changes_.push_back([&] { of.size = edge(random_, {sizeof of, sizeof of, 2 * sizeof of}); });
    }
  }
  template <typename Pointed>
  void visit(Pointed*& field) {
    if (!field) return;
    changes_.push_back([&] { field = nullptr; });
    if constexpr (HasFields<Pointed> && requires { field->size; }) {
      auto& of = const_cast<std::remove_const_t<Pointed>&>(*field);
      visit(of);
      addTail(of);
    }
  }
  template <typename T, size_t count>
  void visit(T (&field)[count]) {
    for (T& element : field) visit(element);
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void visit(Number& field) {
    changes_.push_back([&] {
      if constexpr (std::is_enum_v<Number>) {
        field =
            test::number<Number>(static_cast<uint32_t>(coin(random_, 1, 2) ? 2 + random_.below(4) : random_.next()));
      } else if constexpr (std::is_same_v<Number, bool>) {
        field = !field;
      } else if constexpr (std::is_floating_point_v<Number>) {
        field = wildNumber(random_);
      } else {
        // No list is as long, so that it must be refused before it is read.
        field = static_cast<Number>((uint64_t{1} << (sizeof(Number) * 8 - 1 - random_.below(8))) + random_.below(3));
      }
    });
  }

  test::Seeded& random_;
  std::vector<std::function<void()>> changes_;
};

}  // namespace mnk::fuzz
