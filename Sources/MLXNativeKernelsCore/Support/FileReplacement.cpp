#include "Support/FileReplacement.hpp"
#include "Support/Try.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "Support/Format.hpp"

namespace mnk {

namespace {

constexpr int kMaxLinks = 40;  // the limit of Linux

// On Apple's systems, fsync leaves data in the disk's cache.
int synchronize(int file) {
#ifdef F_FULLFSYNC
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(file);
}

// Makes the new name survive a power loss. Ignores errors of file systems that do so anyway and refuse the call, and of
// folders that cannot be read and therefore not opened.
int synchronizeFolder(const std::string& folder) {
  const FileDescriptor file(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || synchronize(file.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

// In a folder that everyone can write to, another user's link could lead anywhere.
bool isTrusted(const struct stat& link, const std::string& folder) {
  struct stat status {};
  return link.st_uid == ::geteuid() || link.st_uid == 0 ||
         (::stat(folder.empty() ? "." : folder.c_str(), &status) == 0 && link.st_uid == status.st_uid);
}

}  // namespace

Result<FileReplacement::Target> FileReplacement::findTarget(std::string_view op, const std::string& path) {
  Target target{path};
  int number = ELOOP;
  for (int links = 0; links <= kMaxLinks; ++links) {
    struct stat status {};
    if (::lstat(target.path.c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return target;  // creating the file succeeds or reports the problem
      number = errno;
      break;
    }
    if (S_ISREG(status.st_mode)) {
      target.permissions = status.st_mode & 0777;
      target.group = status.st_gid;
      return target;
    }
    if (!S_ISLNK(status.st_mode)) return notPlainFile(op, path);
    if (!isTrusted(status, target.folder())) {
      return Error{.op = std::string(op),
                   .what = "the path is a link of another user",
                   .got = fmt::format("\"{}\"", target.path),
                   .expected = "a link that this user or the owner of its folder has made",
                   .fix = "Pass the path of the file itself, in a folder of your own."};
    }
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlink(target.path.c_str(), text.data(), text.size());
    if (length <= 0 || static_cast<size_t>(length) == text.size()) {
      number = length < 0 ? errno : ENAMETOOLONG;
      break;
    }
    const std::string_view next(text.data(), static_cast<size_t>(length));
    target.path = next.starts_with('/') ? std::string(next) : target.folder().append(next);
  }
  return fileError(op, "the path cannot be followed to a file", path, number, "Pass the path of a file.");
}

FileReplacement::FileReplacement(std::string_view op, const std::string& path, Target target)
    : op_(op), path_(path), target_(std::move(target)), file_(target_.folder()) {
  buffer_.reserve(kFileBufferBytes);
}

Result<FileReplacement> FileReplacement::make(std::string_view op, const std::string& path) {
  MNK_TRY(checkPath(op, path));
  MNK_TRY(auto target, findTarget(op, path));
  if (TemporaryFile::isTemporaryName(std::string_view(target.path).substr(target.folder().size()))) {
    return Error{.op = std::string(op),
                 .what = "the name is one of temporary files",
                 .got = fmt::format("\"{}\"", path),
                 .expected = "a name that the next save does not remove",
                 .fix = "Pass another name."};
  }
  FileReplacement result(op, path, std::move(target));
  TemporaryFile::removeAbandoned(result.target_.folder());
  if (const int number = result.file_.make(); number != 0) {
    return fileError(op, "no file can be made beside the path", path, number,
                     "Pass a path in a folder that exists and that this process may write to.");
  }
  return result;
}

Result<void> FileReplacement::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kFileBufferBytes) MNK_TRY(flush());
  if (bytes.size() >= kFileBufferBytes) return writeOut(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> FileReplacement::flush() {
  auto written = writeOut(buffer_);
  buffer_.clear();
  return written;
}

Result<void> FileReplacement::writeOut(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.descriptor(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fileError(op_, "the file cannot be written", path_, count < 0 ? errno : ENOSPC,
                       "Make room on the disk, and save again.");
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<void> FileReplacement::commit() {
  MNK_TRY(flush());
  // Some file systems have no permissions. If the group cannot be set, its permissions must not go to another group.
  const bool hasGroup = !target_.group || ::fchown(file_.descriptor(), -1, *target_.group) == 0;
  (void)::fchmod(file_.descriptor(), target_.permissions & (hasGroup ? 0777 : 0707));
  if (synchronize(file_.descriptor()) != 0) {
    return fileError(op_, "the file cannot be written", path_, errno, "Make room on the disk, and save again.");
  }
  if (const int number = file_.moveTo(target_.path); number != 0) {
    return fileError(op_, "the new file cannot take its place", path_, number,
                     "Pass the path of a file, not of a folder, that may be replaced.");
  }
  if (const int number = synchronizeFolder(target_.folder()); number != 0) {
    return fileError(op_, "the new file may be lost if the machine stops now", path_, number,
                     "Check the disk, and save again.");
  }
  return {};
}

}  // namespace mnk
