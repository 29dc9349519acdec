// A file that has no name until it takes the place of another, so that nothing is left of it if the process is killed.
// Some systems have no such files, and none can take a place without a name for that moment. Such a name, ".mnk-save-",
// 16 hexadecimal digits and ".tmp", is locked for as long as its owner lives; without its owner it is abandoned, and
// `removeAbandoned` removes it. On a network's file system the lock must be known to all machines that save there.
#pragma once
#include <string>

#include "Support/File.hpp"

namespace mnk {

class TemporaryFile {
 public:
  // In the folder, which is empty or ends with a slash. There is no file yet, and from here on no memory is asked for.
  explicit TemporaryFile(std::string folder);
  TemporaryFile(TemporaryFile&& other) noexcept
      : folder_(std::move(other.folder_)),
        name_(std::move(other.name_)),
        file_(std::move(other.file_)),
        isNamed_(std::exchange(other.isNamed_, false)) {}
  ~TemporaryFile();

  // Makes the file, for its owner alone to read. Gives 0 or an errno value, as the others do.
  int make();
  int descriptor() const { return file_.get(); }
  // Replaces the file at the path, which is in the same folder. Afterwards this is no longer temporary.
  int moveTo(const std::string& path);

  static bool isTemporaryName(std::string_view name);
  // Removes files of this user in the folder whose owners are gone. Lists the folder.
  static void removeAbandoned(const std::string& folder);
  // For tests: as on a system without files that have no name.
  static void setNamesAlways(bool always);

 private:
  void chooseName();

  std::string folder_;
  std::string name_;  // as a path
  FileDescriptor file_;
  bool isNamed_ = false;
};

}  // namespace mnk
