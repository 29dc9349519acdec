// Writes which selectors the tests of a program sent, and which the software Metal implements, into the file that
// MNK_SELECTORS names. Tests/Packaging/test-selectors.sh compares them with those that the Metal device uses.
#include <cstdlib>
#include <fstream>

#include "Harness/Check.hpp"
#include "SoftMetal.hpp"

namespace mnk::test {

namespace {

const AfterEachTest writeLists([]() -> std::vector<std::string> {
  const char* path = std::getenv("MNK_SELECTORS");
  if (!path) return {};
  std::ofstream file(path);
  for (const std::string& selector : softmetal::selectorsSent()) file << "sent " << selector << '\n';
  for (const std::string& selector : softmetal::selectorsImplemented()) file << "implemented " << selector << '\n';
  return {};
});

}  // namespace

}  // namespace mnk::test
