#include "ScriptFolder.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "Harness/Check.hpp"

namespace mnk::test {

ScriptFolder::ScriptFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mnk-scripts-XXXXXX").string();
  EXPECT(mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
}

ScriptFolder::~ScriptFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ScriptFolder::add(const std::string& name, const std::string& text) const {
  const std::filesystem::path script = folder_ / name;
  std::ofstream(script) << "#!/bin/sh\n" << text;
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  return script.string();
}

}  // namespace mnk::test
