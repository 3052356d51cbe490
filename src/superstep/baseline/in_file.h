// Errors about what stands in a file of the user's.
#pragma once

#include <string>

#include "superstep/base/error.h"

namespace superstep::baseline {

// The same error at a place in a file. What a function refuses as its argument was read there, so that the
// file is bad and not the call.
inline Error in_file(const Error& error, const std::string& place) {
  const bool of_argument = error.code() == ErrorCode::invalid_argument;
  return Error(of_argument ? ErrorCode::bad_file : error.code(), error.message(), error.where(), error.hint())
      .in(place);
}

// Does `work` on a file that an option named: what is wrong with that file is not said of the data.
template <class Work>
auto with_file_of(const std::string& option, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), error.where(), error.hint()).in(option);
  }
}

}  // namespace superstep::baseline
