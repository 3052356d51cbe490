// Errors that reach a user.
//
// An error says four things: its kind (`code`), what went wrong (`what`), where (a file, an operator, a
// node, a data set: `where`) and what to do about it (`hint`). It is thrown where nothing sensible can
// follow, and caught once, at the edge of the program; code that can carry on returns Result<T>.
#pragma once

#include <exception>
#include <expected>
#include <string>
#include <utility>

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep {

enum class ErrorCode {
  invalid_argument,  // the call was wrong: an option, a shape, a name
  not_found,         // a file, a workload, a machine that is not there
  bad_file,          // a file that is damaged or of another format
  bad_graph,         // a graph that breaks a rule of its operators
  unsupported,       // right, but not something this build can do
  io,                // the operating system refused: permission, space
  out_of_memory,     // a plan or a tile does not fit
  diverged,          // numbers stopped being finite
  interrupted,       // the user asked to stop
  internal,          // our own fault
};

// Lower-case words for a code, as shown to the user and written to JSON.
const char* name_of(ErrorCode code);

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, std::string where = {}, std::string hint = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

  // "where: message (hint)" in one line.
  const char* what() const noexcept override { return text_.c_str(); }

  // The same error, with a place in front of the place it already has.
  Error in(const std::string& place) const;

 private:
  ErrorCode code_;
  std::string message_, where_, hint_, text_;
};

template <class T>
using Result = std::expected<T, Error>;

using Status = Result<void>;

inline std::unexpected<Error> failure(ErrorCode code, std::string message, std::string where = {},
                                      std::string hint = {}) {
  return std::unexpected(Error(code, std::move(message), std::move(where), std::move(hint)));
}

// The value of a result, or its error thrown.
template <class T>
T value_or_throw(Result<T>&& result) {
  if (!result) throw result.error();
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace superstep

#pragma GCC visibility pop
