// A server of models, from its start to its end: what `superstep serve` does.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "superstep/edge/grpc/server.h"
#include "superstep/edge/http/server.h"
#include "superstep/edge/learn/learner.h"
#include "superstep/edge/service/model_service.h"
#include "superstep/edge/stream/receiver.h"

namespace superstep::edge {

struct NamedSource {
  std::string name;
  ModelSource source;
};
// "NAME=MODEL", or MODEL under a name of its own: the workload's, the file's without its ending, the
// folder's.
NamedSource named_source(const std::string& text);

struct ServeSettings {
  std::vector<NamedSource> models;
  ServiceSettings service;
  ServerSettings server;
  std::optional<GrpcSettings> grpc{};         // none: it is not spoken
  std::size_t memory = std::size_t{1} << 30;  // of requests on their way
  Nanoseconds deadline{0};                    // of requests that give none; 0: none
  DoorSettings door;                          // who may come in, and what is written down of it
  std::chrono::milliseconds lame_duck{0};     // that it says it is not ready, and answers, before it stops
  std::chrono::milliseconds drain{10'000};    // for answers to what waits when it stops
  double seconds = 0;                         // stop after so long; 0: when it is asked to
  std::string server_version;
  // What a hangup has read anew, beside models: tokens, certificates, keys of streams. Where it throws an
  // Error, all stays as it was, and `on_reload` is told.
  struct Renewal {
    std::string what;
    std::function<void(Server& server, Door& door)> renew;
  };
  std::vector<Renewal> renewals{};
  // Told of each model what came of reading it anew, which a hangup (base/system/hangup.h) asks for.
  std::function<void(const std::string& what)> on_reload{};
  ReceiverSettings stream;               // `pull` empty: none
  std::optional<LearnSettings> learn{};  // from the stream's scans; none: nothing is learnt
  // Asked between looks for a reason to stop, beside signals; with the learner, where there is one.
  std::function<bool(Learner* learner)> should_stop{};
  std::optional<Live::Settings> live{};  // pictures of scans that grow; none: they are not stitched
  std::string stream_model;              // that answers it; empty: the only one
};

struct ServedModel {
  std::string name, version;
  bool trained = true, batched = true, has_digest = true;
  std::string scaled_before;  // Blueprint::scaled_before
  std::vector<TimedSize> sizes;
  std::size_t plan_bytes = 0;
  Account account;
  ModelService::NotFinite not_finite;  // rows
  std::uint64_t outside_of_training = 0;
};

struct ServeReport {
  std::vector<ServedModel> models;
  DoorAccount http, grpc;
  StreamAccount stream;
  std::vector<std::string> files;  // with answers to the stream
  std::string stream_failure;      // why some of them are not there; empty: they are
  bool drained = true;             // all that a model was asked was answered
  double seconds = 0;
};

struct ServePlaces {
  std::uint16_t port = 0, grpc = 0;
  std::string pull, publish;  // of the stream, with the ports that the system chose
};

// `on_ready` is told once what answers, and where. Returns when the program was asked to stop
// (base/system/interrupt.h) and what waited was answered. Throws what reading and compiling models and
// listening throw.
ServeReport serve(
    const ServeSettings& settings,
    const std::function<void(const std::vector<ServedModel>& models, const ServePlaces& places)>& on_ready);

}  // namespace superstep::edge
