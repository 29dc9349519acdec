// A temporary folder of shell scripts that replace programs the library starts.
#pragma once
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "Harness/Check.hpp"

namespace mnk::test {

class ScriptFolder {
 public:
  ScriptFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mnk-scripts-XXXXXX").string();
    EXPECT(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ~ScriptFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  // Returns the script's path. The text does not include a shebang line.
  std::string add(const std::string& name, const std::string& text) const {
    const std::filesystem::path script = folder_ / name;
    std::ofstream(script) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return script.string();
  }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace mnk::test
