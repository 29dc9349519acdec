#include "DeclaredAccesses.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace softmetal {

namespace {

// Parses a number, after this sign, off the front of the text.
bool take(std::string_view& text, std::string_view sign, uint64_t& number) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(sign.size());
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  return true;
}

bool readLength(std::string_view word, std::map<uint32_t, uint64_t>& into) {
  uint64_t index = 0, length = 0;
  if (!take(word, "", index) || !take(word, ":", length) || !word.empty()) return false;
  return into.emplace(static_cast<uint32_t>(index), length).second;
}

bool readRegion(std::string_view word, std::map<uint32_t, std::vector<mnk::Region>>& into) {
  uint64_t index = 0;
  mnk::Region region;
  if (!take(word, "", index) || !take(word, ":", region.offset) || !take(word, "+", region.rowBytes)) return false;
  if (!word.empty() && (!take(word, "*", region.rows) || !take(word, "@", region.rowStride))) return false;
  into[static_cast<uint32_t>(index)].push_back(region);
  return word.empty();
}

std::vector<std::string_view> wordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

bool DeclaredAccesses::names(std::string_view kernel) const {
  return std::find(title.begin(), title.end(), kernel) != title.end();
}

std::string DeclaredAccesses::op(std::string_view kernel) const {
  const auto end = std::find(title.begin(), title.end(), kernel);
  return fmt::format("{}", fmt::join(title.begin(), end, " "));
}

GroupText readGroup(std::string_view text) {
  const auto words = wordsOf(text);
  size_t at = 0;
  while (at < words.size() && words[at] != "binds") ++at;
  if (at == words.size()) return {};
  GroupText group{.declares = true};
  if (at == 0) return group;
  DeclaredAccesses accesses;
  accesses.title.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
  std::string_view part = words[at];
  for (++at; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if ((word == "reads" && part == "binds") || (word == "writes" && part != "writes")) {
      part = word;
      const bool isSome = at + 1 < words.size() && words[at + 1] == "some";
      if (isSome) ++at;
      if (word == "writes") accesses.writesSome = isSome;
      continue;
    }
    const bool isRead = part == "binds"   ? readLength(word, accesses.lengths)
                        : part == "reads" ? readRegion(word, accesses.reads)
                                          : readRegion(word, accesses.writes);
    if (!isRead) return group;
  }
  group.accesses = std::move(accesses);
  return group;
}

}  // namespace softmetal
