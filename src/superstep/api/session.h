// What is behind a Session.
#pragma once

#include "superstep/api/compiled.h"

namespace superstep {

class Session::Implementation : public api::Compiled {
 public:
  using Compiled::Compiled;
};

}  // namespace superstep
