// Archives of tar (POSIX ustar and pax, and GNU's): where the members lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/file/packing/content.h"

namespace superstep::data {

struct TarMember {
  std::string name;
  std::uint64_t begin = 0, size = 0;  // of its bytes in the archive, unpacked
};

// The regular files in it, in their order. Nothing is unpacked, so that names lead nowhere; links, devices
// and folders are left out. Throws Error (bad_file) naming the byte where it is damaged or cut short,
// (unsupported) for sparse files.
std::vector<TarMember> tar_members(const Content& file);

// Whether a file, unpacked, begins as an archive does.
bool is_tar(const std::filesystem::path& path);

}  // namespace superstep::data
