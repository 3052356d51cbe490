#include "superstep/base/system/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep {

void occupy_standard_descriptors() {
  // The lowest free number is given first, so these go in order. Output is opened for reading: writes fail.
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      (void)open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR);
}

void tell(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

bool standard_output_failed() { return std::ferror(stdout) != 0; }

void flush_standard_output() {
  errno = 0;
  const bool failed_before = standard_output_failed();
  if (std::fflush(stdout) == 0 && !failed_before) return;
  throw Error(ErrorCode::io,
              errno != 0 ? std::string("cannot be written: ") + std::strerror(errno) : "cannot be written",
              "standard output", "what this command prints is not complete");
}

}  // namespace superstep
