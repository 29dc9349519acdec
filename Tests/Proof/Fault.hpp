// Included by the files into which the proof builds its faults: at most one is active in a process, by its name.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

struct MnkFaultName {
  uint64_t hash = 14695981039346656037u;  // FNV-1a

  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr MnkFaultName(std::string_view name) {
    for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
  }
};

inline const uint64_t mnkActiveFault = MnkFaultName(std::getenv("MNK_FAULT") ? std::getenv("MNK_FAULT") : "").hash;

// Constant expressions contain no fault.
template <size_t kLength>
constexpr bool mnkFault(const char (&name)[kLength]) {
  return !std::is_constant_evaluated() && MnkFaultName({name, kLength - 1}).hash == mnkActiveFault;
}
