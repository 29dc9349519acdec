// Changes one field of an op's struct in the C API to what no C++ op has: a missing handle or list, a number that no
// enum names, a count that no list has.
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

  // Some changes leave the struct fit for use.
  template <typename Struct>
  void mutate(Struct& op) {
    visit(op);
    changes_[random_.below(changes_.size())]();
  }

 private:
  template <typename Struct>
  requires HasFields<Struct>
  void visit(Struct& of) {
    std::apply([&](auto&... fields) { (visit(fields), ...); }, fieldsOf(of));
  }
  template <typename Pointed>
  void visit(Pointed*& field) {
    if (!field) return;
    changes_.push_back([&] { field = nullptr; });
    if constexpr (HasFields<Pointed>) visit(const_cast<std::remove_const_t<Pointed>&>(*field));
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
