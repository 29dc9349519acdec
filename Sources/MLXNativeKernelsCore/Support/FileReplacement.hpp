// A file that replaces another once it is complete.
#pragma once
#include <sys/types.h>

#include <optional>
#include <vector>

#include "Support/TemporaryFile.hpp"

namespace mnk {

// If the path is a symbolic link, its target is replaced or created. Only regular files are replaced; the new file gets
// the old one's permissions and group. A file that did not exist is readable only by its owner, since a cache contains
// user data. Nothing changes without `commit`.
class FileReplacement {
 public:
  static Result<FileReplacement> make(std::string_view op, const std::string& path);

  Result<void> write(std::span<const std::byte> bytes);
  // After a crash or power loss, either the old or the new file is there, complete.
  Result<void> commit();

 private:
  struct Target {
    std::string path;
    mode_t permissions = 0600;
    std::optional<gid_t> group = {};  // of the replaced file

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
