// The state of a server as Prometheus reads it: text/plain; version=0.0.4.
#pragma once

#include <optional>
#include <string>

#include "superstep/edge/door/door.h"
#include "superstep/edge/learn/learner.h"
#include "superstep/edge/service/repository.h"
#include "superstep/edge/stream/stream_account.h"

namespace superstep::edge {

std::string metrics_text(const Repository& repository, const std::optional<StreamAccount>& stream = {},
                         const Learner* learner = nullptr, const Door* door = nullptr);

}  // namespace superstep::edge
