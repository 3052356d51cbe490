#include "superstep/edge/protocol/status.h"

#include <fmt/format.h>

#include <new>

namespace superstep::edge {
namespace {

int status_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::refused:
    case Outcome::dropped: return status::too_many;
    case Outcome::expired: return status::too_late;
    case Outcome::closed: return status::unavailable;
    default: return status::our_fault;
  }
}

}  // namespace

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported: return status::bad_request;
    case ErrorCode::not_found: return status::not_found;
    case ErrorCode::out_of_memory: return status::unavailable;
    default: return status::our_fault;
  }
}

StatusError status_error(Outcome outcome, const std::string& why) {
  return {status_of(outcome), why.empty() ? fmt::format("the request was {}", name_of(outcome)) : why};
}

StatusError refusal_of(Tokens::Verdict verdict, Scope scope) {
  switch (verdict) {
    case Tokens::Verdict::off:
      return {status::forbidden,
              fmt::format("{} is off: this server has no token for it (--token-file)", name_of(scope))};
    case Tokens::Verdict::wrong:
      return {status::forbidden, fmt::format("this token is not for '{}'", name_of(scope))};
    default:
      return {
          status::unauthorized,
          fmt::format("'{}' needs a token of this server: 'Authorization: Bearer TOKEN'", name_of(scope))};
  }
}

StatusError status_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    return error;
  } catch (const Error& error) {
    return {status_of(error.code()), error.what()};
  } catch (const std::bad_alloc&) {
    return {status::unavailable, "the server has no memory left for this request"};
  } catch (const std::exception& error) {
    return {status::our_fault, error.what()};
  }
}

}  // namespace superstep::edge
