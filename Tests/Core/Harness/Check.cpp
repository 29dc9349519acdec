#include "Harness/Check.hpp"

#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include "CoreTests.h"

namespace mnk::test {

namespace {

std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}
std::vector<std::vector<std::string> (*)()>& endings() {
  static std::vector<std::vector<std::string> (*)()> list;
  return list;
}
thread_local std::string report;
thread_local std::vector<std::string> contexts;

}  // namespace

Test::Test(const char* suite, const char* name, void (*run)()) : suite(suite), name(name), run(run) {
  tests().push_back(*this);
}

AfterEachTest::AfterEachTest(std::vector<std::string> (*check)()) {
  endings().push_back(check);
}

Context::Context(std::string text) {
  contexts.push_back(std::move(text));
}
Context::~Context() {
  contexts.pop_back();
}

void fail(const char* file, int line, const std::string& message) {
  const std::string_view path = file;
  report += fmt::format("{}:{}: ", path.substr(path.rfind('/') + 1), line);
  for (const auto& context : contexts) report += context + ": ";
  report += message + "\n";
}

std::string takeFailures() {
  return std::exchange(report, {});
}

void expectError(const char* file, int line, const char* text, const Error* error, const ExpectedError& expected) {
  if (!error) return fail(file, line, fmt::format("{}: succeeded, expected the error: {}", text, expected.what));
  if (error->code != expected.code) {
    fail(file, line,
         fmt::format("{}: got code {}, expected {}; {}", text, name(error->code), name(expected.code),
                     error->message()));
  }
  const auto compare = [&](const char* part, const std::string& got, std::string_view wanted) {
    if (got.find(wanted) == std::string::npos) {
      fail(file, line, fmt::format("{}: {} is \"{}\", expected \"{}\"", text, part, got, wanted));
    }
  };
  compare("op", error->op, expected.op);
  compare("what", error->what, expected.what);
  compare("got", error->got, expected.got);
  compare("expected", error->expected, expected.expected);
  compare("fix", error->fix, expected.fix);
}

}  // namespace mnk::test

using namespace mnk::test;

size_t core_test_count(void) {
  return tests().size();
}
const char* core_test_suite(size_t index) {
  return tests()[index].suite;
}
const char* core_test_name(size_t index) {
  return tests()[index].name;
}

const char* core_test_run(size_t index) {
  report.clear();
  contexts.clear();
  const Test& test = tests()[index];
  try {
    test.run();
  } catch (const Stop&) {
    contexts.clear();
  } catch (const std::exception& exception) {
    fail(test.name, 0, std::string("an exception escaped: ") + exception.what());
  }
  for (const auto check : endings()) {
    for (const std::string& failure : check()) fail(test.name, 0, failure);
  }
  if (report.empty()) return nullptr;
  for (const char* name : {"MNK_DEVICE", "MNK_HOST_CHECKING", "MNK_HOST_PERTURB", "MNK_HOST_SEED", "MNK_TEST_SEED"}) {
    if (const char* value = std::getenv(name)) report += fmt::format("with {}={}\n", name, value);
  }
  return report.c_str();
}
