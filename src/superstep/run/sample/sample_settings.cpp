#include "superstep/run/sample/sample_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::run {

using nlohmann::json;

void check(const SampleSettings& settings) {
  std::vector<std::string> seen;
  for (const std::string& method : settings.methods) {
    if (method != laplace_method) sampling::method_from_name(method);
    if (std::ranges::find(seen, method) != seen.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("names '{}' twice", method), "--method");
    seen.push_back(method);
  }
  if (settings.methods.empty()) throw Error(ErrorCode::invalid_argument, "names no method", "--method");
  if (settings.windows.count > 0 && settings.methods.size() > 1)
    throw Error(ErrorCode::invalid_argument, "sliding windows are sampled by one method", "--method");
  if (settings.windows.count > 0 && settings.methods[0] == laplace_method)
    throw Error(ErrorCode::invalid_argument, "sliding windows go on from chains, and laplace has none",
                "--method");
  if (settings.jitter >= 1)
    throw Error(ErrorCode::invalid_argument, "is a share of the step, below 1", "--jitter");
}

sampling::ChainSettings chain_settings(const SampleSettings& settings, const std::string& method) {
  const sampling::Method known = sampling::method_from_name(method);
  return {.method = known,
          .warm_up = settings.warm_up,
          .target_acceptance = settings.target_acceptance > 0 && known != sampling::Method::metropolis
                                   ? settings.target_acceptance
                                   : sampling::usual_acceptance(known),
          .most_doublings = settings.most_doublings,
          .leapfrog_steps = settings.leapfrog_steps,
          .jitter = settings.jitter,
          .seed = settings.model.seed};
}

json to_json(const SampleSettings& s) {
  json object{{"schema", "superstep-sample/1"},
              {"workload", s.model.workload},
              {"backend", s.model.target},
              {"precision", s.model.precision},
              {"model_options", s.model.model_options},
              {"shapes", s.model.shapes},
              {"bounds", s.model.bounds},
              {"train", s.model.train},
              {"freeze", s.model.freeze},
              {"loss", s.model.loss},
              {"data", s.model.data.string()},
              {"samples", s.model.samples},
              {"seed", s.model.seed},
              {"methods", s.methods},
              {"chains", s.chains},
              {"warm_up", s.warm_up},
              {"draws", s.draws},
              {"target_acceptance", s.target_acceptance},
              {"most_doublings", s.most_doublings},
              {"leapfrog_steps", s.leapfrog_steps},
              {"jitter", s.jitter},
              {"prior", to_string(s.prior)},
              {"held_out", s.held_out},
              {"windows", s.windows.count},
              {"stride", s.windows.stride},
              {"window_warm_up", s.windows.warm_up}};
  object["noise"] = s.noise ? json(*s.noise) : json(nullptr);
  return object;
}

void refuse_other_draws(const json& kept, const json& asked, const std::string& folder) {
  const bool slides = asked.at("windows") > 0;
  for (const auto& [name, value] : asked.items()) {
    const auto before = kept.find(name);
    if (before != kept.end() && *before == value) continue;
    if (name == "methods") continue;  // each has a folder of its own
    const bool more = before != kept.end() && value.is_number() && *before > 0 && value > *before;
    if (more && name == (slides ? "windows" : "draws")) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("holds draws of {} {}, not of {}", name,
                            before == kept.end() ? "nothing" : before->dump(), value.dump()),
                folder, "choose another --out, or give what it was begun with");
  }
}

}  // namespace superstep::run
