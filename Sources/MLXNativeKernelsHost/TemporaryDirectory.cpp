#include "TemporaryDirectory.hpp"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

namespace mnk::host {

std::optional<TemporaryDirectory> TemporaryDirectory::make() {
  std::error_code error;
  const auto base = std::filesystem::temp_directory_path(error);
  if (error) return std::nullopt;
  std::string pattern = (base / "mnk-host-XXXXXX").string();
  if (!mkdtemp(pattern.data())) return std::nullopt;
  try {
    return TemporaryDirectory(pattern);
  } catch (...) {
    rmdir(pattern.c_str());
    throw;
  }
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  // std::filesystem::remove_all throws if memory runs out. nftw fails; memory may be there again the next time.
  constexpr int kMaxOpen = 8, kMaxTries = 8;
  const auto removeOne = [](const char* path, const struct stat*, int, struct FTW*) { return ::remove(path); };
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (nftw(path_.c_str(), removeOne, kMaxOpen, FTW_DEPTH | FTW_PHYS) == 0 || errno != ENOMEM) return;
  }
}

bool TemporaryDirectory::write(const std::filesystem::path& relative, std::string_view text) const {
  std::error_code error;
  std::filesystem::create_directories((path_ / relative).parent_path(), error);
  std::ofstream file(path_ / relative, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  return !error && file.good();
}

}  // namespace mnk::host
