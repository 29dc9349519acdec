// Lines that tests make, compared with those of an .inc file that they include. With MNK_WRITE_GOLDEN=1 in the
// environment they are written to the file instead; run from the root of the repository.
#pragma once
#include <array>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "Harness/Check.hpp"

namespace mnk::test {

struct GoldenText {
  std::string_view path;  // of the file, in Tests/Core
  std::string_view text;  // what it holds
};

// Errors of calls, and what a cache says of itself, by the names of tests.
extern const GoldenText kRefusals;

void expectGolden(const GoldenText& golden, const std::vector<std::string>& lines);
// The line that starts with "key: " must go on with the text; for an empty text there is no such line.
void expectGoldenLine(const GoldenText& golden, const std::string& key, const std::string& text);
// The name of the test that has this location: Suite_Test.
std::string testAt(std::source_location where);

// Lines of errors: what | got | expected | fix. Those after each other that differ in one part share a line, in which
// that part is a list: got // got.
class ErrorLines {
 public:
  // With the op, and a code other than invalidArgument, before `what`. What may be retried is marked.
  void add(const Error& error, bool hasOp = false);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  using Parts = std::array<std::string, 4>;
  std::vector<std::string> lines_;
  Parts last_, joined_;
  size_t listed_ = 4;  // which part is a list; 4: none yet
};

// Calls that fail: RefusedCalls no; no(tensor.slice(3, 2)). Their errors are lines of Refusals.inc that start with the
// name of the test.
class RefusedCalls {
 public:
  explicit RefusedCalls(std::source_location where = std::source_location::current());
  ~RefusedCalls();
  RefusedCalls(const RefusedCalls&) = delete;
  template <typename T>
  void operator()(const Result<T>& result, std::source_location at = std::source_location::current()) {
    add(errorOf(result), at);
  }

 protected:
  void add(const Error* error, std::source_location at);

 private:
  std::string test_, last_;
  ErrorLines errors_;
};

}  // namespace mnk::test
