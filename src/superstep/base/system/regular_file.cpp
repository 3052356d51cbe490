#include "superstep/base/system/regular_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep {
namespace {

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "this is a folder, not a file"
         : S_ISFIFO(mode) ? "this is not a regular file, but a pipe"
         : S_ISSOCK(mode) ? "this is not a regular file, but a socket"
                          : "this is not a regular file, but a device";
}

}  // namespace

void refuse_to_open(const std::filesystem::path& path) {
  if (errno == ENOENT || errno == ENOTDIR)
    throw Error(ErrorCode::not_found, "there is no such file", path.string());
  throw Error(ErrorCode::io, fmt::format("cannot open: {}", std::strerror(errno)), path.string(),
              errno == EACCES ? "check the permissions" : "");
}

void require_regular_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_to_open(path);
  if (!S_ISREG(status.st_mode))
    throw Error(ErrorCode::bad_file, kind_of(status.st_mode), path.string(),
                S_ISFIFO(status.st_mode) ? "write what comes out of it to a file first" : "");
  if (::access(path.c_str(), R_OK) != 0) refuse_to_open(path);
}

std::ifstream open_regular_file(const std::filesystem::path& path) {
  require_regular_file(path);
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse_to_open(path);
  return stream;
}

}  // namespace superstep
