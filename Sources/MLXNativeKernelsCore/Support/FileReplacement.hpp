// A file that takes the place of another once it is complete.
#pragma once
#include <sys/types.h>

#include <optional>
#include <vector>

#include "Support/TemporaryFile.hpp"

namespace mnk {

// A path may be a symbolic link: the file that it leads to is replaced or made. Only plain files are replaced, and the
// new one has the permissions and the group of the old. A file where none was is for its owner alone to read, since a
// cache holds what users have written. Without `commit` nothing changes.
class FileReplacement {
 public:
  static Result<FileReplacement> make(std::string_view op, const std::string& path);

  Result<void> write(std::span<const std::byte> bytes);
  // Even if the machine stops, the old or the new file is there and whole.
  Result<void> commit();

 private:
  struct Target {
    std::string path;
    mode_t permissions = 0600;
    std::optional<gid_t> group = {};  // of the file that is replaced

    std::string folder() const { return path.substr(0, path.rfind('/') + 1); }
  };
  static Result<Target> findTarget(std::string_view op, const std::string& path);
  FileReplacement(std::string_view op, const std::string& path, Target target);
  Result<void> writeOut(std::span<const std::byte> bytes);
  Result<void> flush();

  std::string op_;
  std::string path_;
  Target target_;
  std::vector<std::byte> buffer_;
  TemporaryFile file_;
};

}  // namespace mnk
