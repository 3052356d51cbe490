// The page that shows a scan while it runs: the picture, how sure it is, and how the server does.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "superstep/edge/learn/learner.h"
#include "superstep/edge/live/live.h"
#include "superstep/edge/service/repository.h"
#include "superstep/edge/stream/stream_account.h"

namespace superstep::edge {

// One self-contained HTML page; its script asks for /live/state and the pictures of /live a few times a
// second.
std::string live_page();
nlohmann::json live_state(const Live& live, const Repository& repository,
                          const std::optional<StreamAccount>& stream, const Learner* learner);

}  // namespace superstep::edge
