// Which rule a program broke, beside the words that say so: for callers that have exceptions of their own.
#pragma once

#include "superstep/base/error.h"

namespace superstep::bsp {

enum class Rule {
  mapped,            // every element and every vertex is on a tile
  connected,         // every field of a vertex has its elements
  no_race,           // within a compute set one writer, and no reader beside it
  written_first,     // nothing is read that was never written
  writeable,         // constants, and elements at two places, are not written
  transfer,          // a stream or a remote buffer is as large as the tensor, and goes its way
  stream_connected,  // the host has given a stream its data
};

class RuleError : public Error {
 public:
  RuleError(Rule rule, ErrorCode code, std::string message, std::string where = {}, std::string hint = {})
      : Error(code, std::move(message), std::move(where), std::move(hint)), rule_(rule) {}
  Rule rule() const { return rule_; }

 private:
  Rule rule_;
};

}  // namespace superstep::bsp
