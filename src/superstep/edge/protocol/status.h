// What goes wrong with a request, by the numbers that HTTP has for it.
#pragma once

#include <exception>
#include <string>

#include "superstep/base/error.h"
#include "superstep/edge/door/tokens.h"
#include "superstep/edge/service/account.h"

namespace superstep::edge {

struct StatusError {
  int status = 500;
  std::string message;
};

namespace status {
inline constexpr int bad_request = 400, unauthorized = 401, forbidden = 403, not_found = 404,
                     method_not_allowed = 405, too_large = 413, too_many = 429, our_fault = 500,
                     unavailable = 503, too_late = 504;
}  // namespace status

int status_of(ErrorCode code);
// Of a request that was queued and not served. `why` empty: the outcome's name says it.
StatusError status_error(Outcome outcome, const std::string& why);
// Of who may not: any verdict but good.
StatusError refusal_of(Tokens::Verdict verdict, Scope scope);
// Of whatever was thrown.
StatusError status_error(const std::exception_ptr& thrown);

}  // namespace superstep::edge
