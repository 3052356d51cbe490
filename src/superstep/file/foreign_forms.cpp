#include "superstep/file/foreign_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

bool has_at(const fs::path& path, std::size_t at, std::string_view mark) {
  std::ifstream stream = open_regular_file(path);
  std::array<char, 8> found{};
  stream.seekg(static_cast<std::streamoff>(at));
  stream.read(found.data(), static_cast<std::streamsize>(mark.size()));
  return stream && std::string_view(found.data(), mark.size()) == mark;
}

// The file itself; of a folder the first one by name, hidden ones left out.
fs::path first_file(const fs::path& path) {
  std::error_code none;
  if (fs::is_regular_file(path, none)) return path;
  fs::path first;
  for (const auto& entry : fs::directory_iterator(path, none)) {
    const bool hidden = entry.path().filename().string().starts_with('.');
    if (!hidden && entry.is_regular_file(none) && (first.empty() || entry.path() < first))
      first = entry.path();
  }
  return first;
}

}  // namespace

void refuse_foreign_form(const fs::path& path) {
  const fs::path file = first_file(path);
  if (file.empty()) return;
  if (has_at(file, 0, "root"))
    throw Error(ErrorCode::unsupported, "is a file of ROOT, which is not read", file.string(),
                fmt::format("uproot makes a table of a tree: python3 -c \"import awkward, uproot; "
                            "awkward.to_parquet(uproot.open('{}:TREE').arrays(), 'TREE.parquet')\"",
                            file.string()));
  constexpr std::size_t preamble = 128;  // DICOM PS3.10, 7.1
  if (has_at(file, preamble, "DICM"))
    throw Error(ErrorCode::unsupported, "is a file of DICOM, which is not read", file.string(),
                fmt::format("dcm2niix makes a volume of each series of a folder: dcm2niix -f %s -o . '{}'",
                            fs::is_directory(path) ? path.string() : file.parent_path().string()));
}

}  // namespace superstep::data
