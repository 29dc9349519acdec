// A temporary folder of shell scripts that replace programs the library starts.
#pragma once
#include <filesystem>
#include <string>

namespace mnk::test {

class ScriptFolder {
 public:
  ScriptFolder();
  ~ScriptFolder();
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  // Returns the script's path. The text does not include a shebang line.
  std::string add(const std::string& name, const std::string& text) const;
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace mnk::test
