// Options of a command line, for the programs of tests and benchmarks. A table lists them, and is also what --help
// prints.
#pragma once
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Support/Errors.hpp"

namespace mnk::arguments {

// Stores a value. Returns what the option takes instead if it is not such a value, otherwise nothing.
using ReadValue = std::function<std::string(std::string_view value)>;

struct Option {
  std::string_view name;   // "--seed"
  std::string_view value;  // its value in --help; empty if it takes none
  std::string_view help;
  ReadValue read;
};

template <typename T, typename To = T>
ReadValue constant(T& into, To value) {
  return [&into, value](std::string_view) { return into = value, std::string(); };
}

inline ReadValue text(std::string& into) {
  return [&into](std::string_view value) { return into = value, std::string(); };
}

template <typename T>
ReadValue number(T& into, uint64_t least = 0, uint64_t most = std::numeric_limits<uint32_t>::max()) {
  return [&into, least, most](std::string_view value) {
    uint64_t read = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
    if (error != std::errc() || end != value.data() + value.size() || read < least || read > most) {
      return fmt::format("a number from {} to {}", least, most);
    }
    into = static_cast<T>(read);
    return std::string();
  };
}

template <typename T>
ReadValue choice(T& into, std::vector<std::pair<std::string, T>> from) {
  return [&into, from](std::string_view value) {
    std::vector<std::string> names;
    for (const auto& [name, choice] : from) {
      if (name == value) return into = choice, std::string();
      names.push_back(name);
    }
    return oneOf(names, "nothing");
  };
}

// Values with commas between; `reader` makes a ReadValue for each.
template <typename T, typename Reader>
ReadValue list(std::vector<T>& into, Reader reader) {
  return [&into, reader](std::string_view values) {
    into.clear();
    while (true) {
      const size_t comma = values.find(',');
      const std::string expected = reader(into.emplace_back())(values.substr(0, comma));
      if (!expected.empty()) return expected + ", with commas between several";
      if (comma == std::string_view::npos) return std::string();
      values.remove_prefix(comma + 1);
    }
  };
}

// Returns what is wrong with the arguments, or nothing.
inline std::string readOptions(std::span<const Option> options, std::span<char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const Option* option = nullptr;
    for (const Option& each : options) {
      if (each.name == name) option = &each;
    }
    if (!option) return fmt::format("there is no option {}", name);
    const bool takesValue = !option->value.empty();
    if (takesValue && ++i == arguments.size()) return fmt::format("{} needs a value: {}", name, option->value);
    const std::string_view value = takesValue ? arguments[i] : "";
    if (const std::string expected = option->read(value); !expected.empty()) {
      return fmt::format("{} takes {}, not \"{}\"", name, expected, value);
    }
  }
  return {};
}

inline std::string helpText(std::string_view about, std::span<const Option> options) {
  std::string text(about);
  for (const Option& option : options) {
    text += fmt::format("\n  {:<26} {}", fmt::format("{} {}", option.name, option.value), option.help);
  }
  return text + "\n";
}

// Returns the exit status if the program has nothing more to do: it printed help, or what is wrong.
inline std::optional<int> readArguments(std::string_view about, std::span<const Option> options,
                                        std::span<char* const> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::fputs(helpText(about, options).c_str(), stdout);
    return 0;
  }
  const std::string wrong = readOptions(options, arguments);
  if (wrong.empty()) return {};
  std::fprintf(stderr, "%s. See --help.\n", wrong.c_str());
  return 2;
}

}  // namespace mnk::arguments
