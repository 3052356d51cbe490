// What a server answers: the Open Inference Protocol, the repository of models, metrics and a page for
// people. Knows nothing of sockets.
#pragma once

#include <string>

#include "superstep/edge/door/door.h"
#include "superstep/edge/http/message.h"
#include "superstep/edge/learn/learner.h"
#include "superstep/edge/live/live.h"
#include "superstep/edge/protocol/inference.h"
#include "superstep/edge/service/repository.h"
#include "superstep/edge/stream/stream_account.h"

namespace superstep::edge {

struct RouteSettings {
  std::string server_version;
  Nanoseconds deadline{0};  // of requests that give none; 0: none
  // What became of a stream's frames; empty: there is none.
  std::function<std::optional<StreamAccount>()> stream;
};

class Routes {
 public:
  // All must outlive it.
  Routes(Repository& repository, MemoryBudget& budget, Door& door, RouteSettings settings)
      : repository_(repository),
        door_(door),
        inference_(repository, budget, settings.deadline),
        settings_(std::move(settings)) {}

  // Pages show it from then on; it must outlive this. Before requests are handled.
  void show(Live* live) { live_ = live; }
  void learn_by(Learner* learner) { learner_ = learner; }

  const Inference& inference() const { return inference_; }

  // Before a request's body is read: an answer for who may not ask it.
  std::optional<HttpResponse> admit(HttpRequest& request) const;
  // Where it is best handled.
  static Lane lane(const HttpRequest& request);
  // Answers at once, or, of inference, when it is done. Changes of models are made by the calling thread.
  void handle(HttpRequest request, Reply reply);

 private:
  HttpResponse answer(const HttpRequest& request);
  HttpResponse page(const HttpRequest& request);
  HttpResponse read(const HttpRequest& request);
  HttpResponse live_picture(std::string_view name);
  HttpResponse model_read(std::string_view path);
  HttpResponse change(const HttpRequest& request);
  void infer(HttpRequest request, const Reply& reply);
  HttpResponse changed(std::string_view verb, std::string_view model);

  Repository& repository_;
  Door& door_;
  const Inference inference_;
  RouteSettings settings_;
  Live* live_ = nullptr;
  Learner* learner_ = nullptr;
};

// With the status that its kind has: {"error": "..."}.
HttpResponse error_response(int status, std::string_view message);

}  // namespace superstep::edge
