#include "TemporaryDirectory.hpp"

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
  return TemporaryDirectory(pattern);
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
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
