#include "Support/FileReplacement.hpp"
#include "Support/Try.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/Format.hpp"

namespace mnk {

namespace {

// On Apple's systems, fsync leaves data in the disk's cache.
int synchronize(int file) {
#ifdef F_FULLFSYNC
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(file);
}

// Makes the new name survive a power loss. Ignores errors of file systems that do so anyway and refuse the call, and of
// folders that cannot be read and therefore not opened.
int synchronizeFolder(int folder) {
  const FileDescriptor file(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || synchronize(file.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

}  // namespace

FileReplacement::FileReplacement(std::string_view op, const std::string& path, FileLocation location)
    : op_(op), path_(path), folder_(std::move(location.folder)), file_(folder_.get(), std::move(location.name)) {
  buffer_.reserve(kFileBufferBytes);
}

Result<FileReplacement> FileReplacement::make(std::string_view op, const std::string& path) {
  MNK_TRY(auto location, FileLocation::find(op, path));
  if (TemporaryFile::isTemporaryName(location.name)) {
    return Error{.op = std::string(op),
                 .what = "the name is one of temporary files",
                 .got = fmt::format("\"{}\"", path),
                 .expected = "a name that no later save removes",
                 .fix = "Pass another name."};
  }
  struct stat status {};
  const bool exists = ::fstatat(location.folder.get(), location.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) return cannotMakeFile(op, path, errno);
  if (exists && !S_ISREG(status.st_mode)) return notPlainFile(op, path);
  FileReplacement result(op, path, std::move(location));
  if (exists) {
    result.permissions_ = status.st_mode & 0777;
    result.group_ = status.st_gid;
  }
  if (const int number = result.file_.make(); number != 0) return cannotMakeFile(op, path, number);
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
  const bool hasGroup = !group_ || ::fchown(file_.descriptor(), -1, *group_) == 0;
  (void)::fchmod(file_.descriptor(), permissions_ & (hasGroup ? 0777 : 0707));
  if (synchronize(file_.descriptor()) != 0) {
    return fileError(op_, "the file cannot be written", path_, errno, "Make room on the disk, and save again.");
  }
  if (const int number = file_.replaceTarget(); number != 0) {
    return fileError(op_, "the new file cannot take its place", path_, number,
                     "Pass the path of a file, not of a folder, that may be replaced.");
  }
  if (const int number = synchronizeFolder(folder_.get()); number != 0) {
    return fileError(op_, "the new file may be lost if the machine stops now", path_, number,
                     "Check the disk, and save again.");
  }
  return {};
}

}  // namespace mnk
