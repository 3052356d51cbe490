#include "superstep/base/error.h"

namespace superstep {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::not_found: return "not found";
    case ErrorCode::bad_file: return "bad file";
    case ErrorCode::bad_graph: return "bad graph";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "input/output";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::diverged: return "diverged";
    case ErrorCode::interrupted: return "interrupted";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string message, std::string where, std::string hint)
    : code_(code), message_(std::move(message)), where_(std::move(where)), hint_(std::move(hint)) {
  if (!where_.empty()) text_ = where_ + ": ";
  text_ += message_;
  if (!hint_.empty()) text_ += " (" + hint_ + ")";
}

Error Error::in(const std::string& place) const {
  return Error(code_, message_, where_.empty() ? place : place + ": " + where_, hint_);
}

}  // namespace superstep
