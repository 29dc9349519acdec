// A file that has no name until it replaces another, so that a killed process leaves nothing behind. Some systems lack
// unnamed files, and replacing a file always needs a name for a moment. That name is locked while its owner lives. It
// follows from the name of the file to replace, so that the next save of that file finds and removes what killed saves
// have left without listing the folder. On a network file system, the lock must be visible to all machines that save
// there. Without locks, or during more than 16 saves of one file, names are random and nothing removes them.
#pragma once
#include <string>

#include "Support/File.hpp"

namespace mnk {

class TemporaryFile {
 public:
  // Will replace the file of this name in the folder, an open descriptor that outlives this object. Creates no file
  // yet; later calls do not allocate memory.
  TemporaryFile(int folder, std::string target);
  TemporaryFile(TemporaryFile&& other) noexcept
      : folder_(other.folder_),
        target_(std::move(other.target_)),
        name_(std::move(other.name_)),
        file_(std::move(other.file_)),
        isNamed_(std::exchange(other.isNamed_, false)) {}
  ~TemporaryFile();

  // Creates the file, readable only by its owner. Returns 0 or an errno value, as `replaceTarget` does.
  int make();
  int descriptor() const { return file_.get(); }
  // This file is then no longer temporary.
  int replaceTarget();

  static bool isTemporaryName(std::string_view name);
  // For tests: behaves as on a system without unnamed files.
  static void setNamesAlways(bool always);

 private:
  void chooseName(int attempt);
  void removeAbandoned();

  int folder_;
  std::string target_;
  std::string name_;
  FileDescriptor file_;
  bool isNamed_ = false;
};

}  // namespace mnk
