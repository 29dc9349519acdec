#include "Support/File.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "Support/Format.hpp"

namespace mnk {

namespace {

constexpr size_t kBufferBytes = 1 << 18;

Error systemError(std::string_view op, std::string_view what, const std::string& path, int number,
                  std::string_view fix) {
  return {.op = std::string(op),
          .what = std::string(what),
          .got = fmt::format("\"{}\": {}", path, std::generic_category().message(number)),
          .expected = "a file that can be read or written there",
          .fix = std::string(fix)};
}

// On Apple's systems fsync leaves data in the disk's own cache.
int synchronize(int file) {
#ifdef F_FULLFSYNC
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
  return ::fsync(file);
}

// The system would see a path that ends at the zero.
Result<void> checkPath(std::string_view op, const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return {};
  return Error{.op = std::string(op),
               .what = "the path names no file",
               .got = path.empty() ? "an empty path" : "a path with a zero in it",
               .expected = "the name of a file",
               .fix = "Pass the path of a file."};
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<FileReader> FileReader::open(std::string_view op, const std::string& path) {
  if (auto checked = checkPath(op, path); !checked) return std::move(checked).error();
  FileReader reader(op, path, FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  if (reader.file_.get() < 0) {
    const bool isMissing = errno == ENOENT;
    return systemError(op, isMissing ? "there is no such file" : "the file cannot be opened", path, errno,
                       "Pass the path of a file that this process may read.");
  }
  struct stat status {};
  if (::fstat(reader.file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{.op = std::string(op),
                 .what = "the path does not lead to a plain file",
                 .got = fmt::format("\"{}\"", path),
                 .expected = "a plain file",
                 .fix = "Pass the path of a file, not of a folder or a device."};
  }
  reader.length_ = static_cast<uint64_t>(status.st_size);
  return reader;
}

Result<void> FileReader::read(std::span<std::byte> into) {
  while (!into.empty()) {
    if (used_ == buffer_.size()) {
      buffer_.resize(kBufferBytes);
      ssize_t got;
      do got = ::read(file_.get(), buffer_.data(), buffer_.size());
      while (got < 0 && errno == EINTR);
      const int number = errno;
      buffer_.resize(got > 0 ? static_cast<size_t>(got) : 0);
      used_ = 0;
      if (got < 0) {
        return systemError(op_, "the file cannot be read", path_, number, "Check the disk, and read it again.");
      }
      if (got == 0) {
        return Error{.op = op_,
                     .what = "the file became shorter while it was read",
                     .got = fmt::format("\"{}\"", path_),
                     .expected = bytesText(length_),
                     .fix = "Let nobody else write to the file."};
      }
    }
    const size_t count = std::min(into.size(), buffer_.size() - used_);
    std::memcpy(into.data(), buffer_.data() + used_, count);
    used_ += count;
    into = into.subspan(count);
  }
  return {};
}

Result<FileReplacement> FileReplacement::make(std::string_view op, const std::string& path) {
  if (auto checked = checkPath(op, path); !checked) return std::move(checked).error();
  // A name of its own, since one made of the path's could be too long.
  std::string temporary = path.substr(0, path.rfind('/') + 1) + ".mnk-XXXXXX";
  FileDescriptor file(::mkstemp(temporary.data()));
  if (file.get() < 0) {
    return systemError(op, "no file can be made beside the path", path, errno,
                       "Pass a path in a folder that exists and that this process may write to.");
  }
  (void)::fcntl(file.get(), F_SETFD, FD_CLOEXEC);
  return FileReplacement(op, path, std::move(temporary), std::move(file));
}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> FileReplacement::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + count);
    bytes = bytes.subspan(count);
    if (buffer_.size() < kBufferBytes) continue;
    if (auto flushed = flush(); !flushed) return flushed;
  }
  return {};
}

Result<void> FileReplacement::flush() {
  for (size_t written = 0; written < buffer_.size();) {
    const ssize_t count = ::write(file_.get(), buffer_.data() + written, buffer_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return systemError(op_, "the file cannot be written", path_, count < 0 ? errno : ENOSPC,
                         "Make room on the disk, and save again.");
    }
    written += static_cast<size_t>(count);
  }
  buffer_.clear();
  return {};
}

Result<void> FileReplacement::commit() {
  if (auto flushed = flush(); !flushed) return flushed;
  // Closing may report what writing could not; afterwards the number belongs to nobody.
  if (synchronize(file_.get()) != 0 || ::close(file_.release()) != 0) {
    return systemError(op_, "the file cannot be written", path_, errno, "Make room on the disk, and save again.");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return systemError(op_, "the new file cannot take its place", path_, errno,
                       "Pass the path of a file, not of a folder, that may be replaced.");
  }
  temporary_.clear();
  return {};
}

}  // namespace mnk
