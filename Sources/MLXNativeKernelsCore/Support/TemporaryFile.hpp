// A file that has no name until it replaces another, so that a killed process leaves nothing behind. Some systems lack
// unnamed files, and replacing a file always needs a name for a moment. That name, ".mnk-save-", 16 hexadecimal digits
// and ".tmp", is locked while its owner lives. `removeAbandoned` removes unlocked ones. On a network file system, the
// lock must be visible to all machines that save there.
#pragma once
#include <string>

#include "Support/File.hpp"

namespace mnk {

class TemporaryFile {
 public:
  // `folder` is empty or ends with a slash. Creates no file yet; later calls do not allocate memory.
  explicit TemporaryFile(std::string folder);
  TemporaryFile(TemporaryFile&& other) noexcept
      : folder_(std::move(other.folder_)),
        name_(std::move(other.name_)),
        file_(std::move(other.file_)),
        isNamed_(std::exchange(other.isNamed_, false)) {}
  ~TemporaryFile();

  // Creates the file, readable only by its owner. Returns 0 or an errno value, as the others do.
  int make();
  int descriptor() const { return file_.get(); }
  // Replaces the file at the path, which is in the same folder. This file is then no longer temporary.
  int moveTo(const std::string& path);

  static bool isTemporaryName(std::string_view name);
  // Lists the folder and removes this user's files whose owners are gone.
  static void removeAbandoned(const std::string& folder);
  // For tests: behaves as on a system without unnamed files.
  static void setNamesAlways(bool always);

 private:
  void chooseName();

  std::string folder_;
  std::string name_;  // as a path
  FileDescriptor file_;
  bool isNamed_ = false;
};

}  // namespace mnk
