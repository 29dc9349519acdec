#include "Harness/Golden.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

namespace mnk::test {

namespace {

constexpr std::string_view kBegin = "R\"golden(", kEnd = ")golden\"";

bool isWriting() {
  return std::getenv("MNK_WRITE_GOLDEN") != nullptr;
}

std::string pathOf(const GoldenText& golden) {
  return fmt::format("Tests/Core/{}", golden.path);
}

void write(const GoldenText& golden, std::string_view lines) {
  std::ofstream(pathOf(golden)) << kBegin << '\n' << lines << '\n' << kEnd << '\n';
}

void failAt(const GoldenText& golden, std::string_view got, std::string_view expected) {
  fail(__FILE__, __LINE__,
       fmt::format("{}: got\n  {}\nexpected\n  {}\nMNK_WRITE_GOLDEN=1 writes it again", golden.path, got, expected));
}

// The line that has the character at an index.
std::string_view lineAt(std::string_view text, size_t at) {
  const size_t begin = std::min(text.rfind('\n', at - 1) + 1, text.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

const GoldenText kRefusals{
    "Harness/Refusals.inc",
#include "Refusals.inc"
};

void expectGolden(const GoldenText& golden, const std::vector<std::string>& lines) {
  const std::string got = fmt::format("\n{}\n", fmt::join(lines, "\n"));
  if (isWriting()) return write(golden, fmt::format("{}", fmt::join(lines, "\n")));
  if (got == golden.text) return;
  const auto differs = std::mismatch(got.begin(), got.end(), golden.text.begin(), golden.text.end()).first;
  const auto at = static_cast<size_t>(differs - got.begin());
  failAt(golden, lineAt(got, at), lineAt(golden.text, at));
}

void expectGoldenLine(const GoldenText& golden, const std::string& key, const std::string& text) {
  const std::string line = fmt::format("{}: {}", key, text);
  if (isWriting()) {
    std::ifstream file(pathOf(golden));
    std::set<std::string> lines;
    for (std::string each; std::getline(file, each);) {
      if (!each.starts_with(kBegin) && each != kEnd && !each.starts_with(key + ": ")) lines.insert(each);
    }
    if (!text.empty()) lines.insert(line);
    return write(golden, fmt::format("{}", fmt::join(lines, "\n")));
  }
  const size_t at = golden.text.find(fmt::format("\n{}: ", key));
  const std::string_view expected = at == std::string_view::npos ? "" : lineAt(golden.text, at + 1);
  if ((text.empty() ? "" : line) != expected) failAt(golden, line, expected);
}

std::string testAt(std::source_location where) {
  const std::string name = where.function_name();  // TEST makes "void mnk::test::Suite_Test()"
  const size_t begin = name.find_last_of(" :") + 1;
  return name.substr(begin, name.find('(') - begin);
}

void ErrorLines::add(const Error& error, bool hasOp) {
  std::string code = error.code == ErrorCode::invalidArgument ? "" : fmt::format(" ({})", name(error.code));
  if (error.retryable) code += " (retryable)";
  const Parts parts{hasOp ? fmt::format("{}{}: {}", error.op, code, error.what) : error.what, error.got, error.expected,
                    error.fix};
  size_t differences = 0, part = listed_;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == last_[i]) continue;
    ++differences;
    part = i;
  }
  constexpr size_t kLongest = 250;
  const bool isJoined = !lines_.empty() && differences <= 1 && (listed_ == 4 || part == listed_) && part < 4 &&
                        lines_.back().size() + parts[part].size() < kLongest;
  last_ = parts;
  if (isJoined) {
    listed_ = part;
    joined_[part] += " // " + parts[part];
    lines_.pop_back();
  } else {
    listed_ = parts.size();
    joined_ = parts;
  }
  lines_.push_back(fmt::format("{}", fmt::join(joined_, " | ")));
}

RefusedCalls::RefusedCalls(std::source_location where) : test_(testAt(where)) {}

RefusedCalls::~RefusedCalls() {
  std::vector<std::string> lines = errors_.lines();
  lines.emplace_back();  // there is no further line
  for (size_t i = 0; i < lines.size(); ++i) expectGoldenLine(kRefusals, fmt::format("{} {:02}", test_, i), lines[i]);
}

void RefusedCalls::add(const Error* error, std::source_location at) {
  if (!error) return fail(at.file_name(), static_cast<int>(at.line()), "it is not refused");
  if (const std::string message = error->message(); std::exchange(last_, message) != message) errors_.add(*error, true);
}

}  // namespace mnk::test
