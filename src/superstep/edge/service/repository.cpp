#include "superstep/edge/service/repository.h"

#include <algorithm>
#include <cctype>

namespace superstep::edge {
namespace {

bool is_name(std::string_view name) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, good);
}

}  // namespace

void Repository::add(std::unique_ptr<ModelService> model) {
  const std::string name = model->name();
  if (!is_name(name))
    throw Error(ErrorCode::invalid_argument, "is no name for a model: letters, digits, '-', '_' and '.'",
                name, "give NAME=MODEL");
  if (!models_.emplace(name, std::move(model)).second)
    throw Error(ErrorCode::invalid_argument, "two models have this name", name, "give NAME=MODEL");
}

ModelService* Repository::find(std::string_view name) const {
  const auto found = models_.find(name);
  return found == models_.end() ? nullptr : found->second.get();
}

bool Repository::drain(Clock::time_point until) {
  open_ = false;
  for (const auto& [name, model] : models_) {
    model->stop_widening();
    model->batcher().close();
  }
  bool all = true;
  for (const auto& [name, model] : models_) all &= model->batcher().wait_until_idle(until);
  // What a worker has begun is finished: a batch is short, and its rows are being written.
  for (const auto& [name, model] : models_) {
    model->batcher().abandon();
    model->batcher().wait_until_idle(Clock::time_point::max());
  }
  return all;
}

}  // namespace superstep::edge
