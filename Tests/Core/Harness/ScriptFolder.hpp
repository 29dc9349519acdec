// A temporary folder of shell scripts in place of programs that the library starts.
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

  // Its path. The text has no first line that names the shell.
  std::string add(const std::string& name, const std::string& text) const;
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace mnk::test
