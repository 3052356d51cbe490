#include "superstep/edge/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "superstep/base/stopwatch.h"
#include "superstep/base/system/asked_to_stop.h"
#include "superstep/base/system/hangup.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/edge/protocol/routes.h"
#include "superstep/run/user/user_model.h"

namespace superstep::edge {
namespace {

ServedModel facts_of(const ModelService& model) {
  ServedModel facts{.name = model.name(),
                    .account = model.batcher().account(),
                    .not_finite = model.not_finite(),
                    .outside_of_training = model.outside_of_training()};
  if (const auto version = model.current()) {
    facts.version = version->id();
    facts.trained = version->trained();
    facts.has_digest = version->has_digest();
    facts.scaled_before = version->scaled_before();
    facts.batched = version->ports().batched;
    facts.sizes = version->sizes();
    facts.plan_bytes = version->plan_bytes();
  }
  return facts;
}

std::vector<ServedModel> facts_of(const Repository& repository) {
  std::vector<ServedModel> facts;
  for (const auto& [name, model] : repository.models()) facts.push_back(facts_of(*model));
  return facts;
}

ModelService& of_stream(const ServeSettings& settings, const Repository& repository) {
  const auto& models = repository.models();
  ModelService* model = settings.stream_model.empty() && models.size() == 1
                            ? models.begin()->second.get()
                            : repository.find(settings.stream_model);
  if (!model)
    throw Error(
        ErrorCode::invalid_argument,
        settings.stream_model.empty() ? "which of the models answers the stream?" : "there is no such model",
        settings.stream_model.empty() ? "--pull" : settings.stream_model, "give --pull-model NAME");
  return *model;
}

// Nobody is told anything any more once what would tell them is gone, however that came about.
struct DrainedAtTheEnd {
  Repository& repository;
  ~DrainedAtTheEnd() { repository.drain(Clock::now()); }
};

// What is served under a name is read anew; what cannot be read changes nothing.
void reload_all(const Repository& repository, const std::function<void(const std::string&)>& tell) {
  for (const auto& [name, model] : repository.models()) {
    std::string outcome;
    try {
      outcome =
          model->reload() ? "version " + model->current()->id() + " answers" : "is what is served already";
    } catch (const std::exception& error) {
      outcome = error.what();
    }
    if (tell) tell(name + ": " + outcome);
  }
}

void renew_all(const ServeSettings& settings, Server& server, Door& door) {
  for (const ServeSettings::Renewal& renewal : settings.renewals) {
    std::string outcome = "as the file says now";
    try {
      renewal.renew(server, door);
    } catch (const std::exception& error) {
      outcome = fmt::format("as before: {}", error.what());
    }
    door.log_change("SIGHUP", "", renewal.what, outcome);
    if (settings.on_reload) settings.on_reload(renewal.what + ": " + outcome);
  }
}

bool is_over(const ServeSettings& settings, const Stopwatch& since) {
  return asked_to_stop() || (settings.seconds > 0 && since.seconds() >= settings.seconds);
}

void wait_for_the_end(const ServeSettings& settings, const Repository& repository, Learner* learner,
                      Server& server, Door& door, const Stopwatch& since) {
  constexpr auto between_looks = std::chrono::milliseconds(20);
  while (!is_over(settings, since)) {
    if (settings.should_stop && settings.should_stop(learner)) return;
    if (take_hangup()) {
      renew_all(settings, server, door);
      reload_all(repository, [&](const std::string& what) {
        door.log_change("SIGHUP", "", "load", what);
        if (settings.on_reload) settings.on_reload(what);
      });
    }
    std::this_thread::sleep_for(between_looks);
  }
}

// Whoever asks before whether it is ready goes elsewhere; who does not is answered still.
void be_lame(const ServeSettings& settings, Repository& repository) {
  repository.say_not_ready();
  std::this_thread::sleep_for(settings.lame_duck);
}

void add_models(const ServeSettings& settings, Repository& repository) {
  std::vector<NamedSource> models = settings.models;
  if (settings.learn && models.size() == 1)  // where a server before this one has come to
    models[0].source.what = VersionFolder(settings.learn->folder).present().value_or(models[0].source.what);
  for (const NamedSource& model : models)
    repository.add(std::make_unique<ModelService>(model.name, model.source, settings.service));
}

// What there is of a stream: who receives its frames, what grows of them, who learns from them.
struct StreamSide {
  std::unique_ptr<Live> live;
  std::unique_ptr<Learner> learner;
  std::unique_ptr<Receiver> receiver;

  void open(const ServeSettings& settings, ModelService& model, Routes& routes) {
    if (settings.live) {
      Live::Settings of_live = *settings.live;
      of_live.model = model.name();
      live = std::make_unique<Live>(std::move(of_live), model.current()->ports());
      routes.show(live.get());
    }
    if (settings.learn) {
      learner = std::make_unique<Learner>(*settings.learn, model);
      routes.learn_by(learner.get());
    }
    receiver = std::make_unique<Receiver>(settings.stream, model, live.get(), learner.get());
  }
  void finish() {
    if (receiver) receiver->finish();
    if (live) live->finish();
    if (learner) learner->stop();
  }
  void tell(ServeReport& report) const {
    if (!receiver) return;
    report.stream = receiver->account();
    report.files = receiver->files();
    report.stream_failure = receiver->failure();
  }
};

}  // namespace

NamedSource named_source(const std::string& text) {
  const std::size_t equals = text.find('=');
  NamedSource named;
  named.source.what = equals == std::string::npos ? text : text.substr(equals + 1);
  if (equals != std::string::npos) {
    named.name = text.substr(0, equals);
  } else {
    const std::filesystem::path path = std::filesystem::path(text).lexically_normal();
    named.name = path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
    if (run::is_model_file(named.name)) named.name.resize(named.name.rfind('.'));
  }
  return named;
}

ServeReport serve(const ServeSettings& settings,
                  const std::function<void(const std::vector<ServedModel>&, const ServePlaces&)>& on_ready) {
  MemoryBudget budget(settings.memory);
  Repository repository;
  add_models(settings, repository);
  Door door(settings.door);
  StreamSide stream;
  Routes routes(
      repository, budget, door,
      {.server_version = settings.server_version, .deadline = settings.deadline, .stream = [&stream] {
         return stream.receiver ? std::optional(stream.receiver->account()) : std::nullopt;
       }});
  // From here on the end is orderly: what was taken in is answered first, and no step of a model hears of the
  // end.
  const Uninterrupted until_drained;
  if (!settings.stream.pull.empty()) stream.open(settings, of_stream(settings, repository), routes);
  const DrainedAtTheEnd before_the_receiver{repository};
  Server server(settings.server, budget, door,
                {.handle = [&](HttpRequest request,
                               Reply reply) { routes.handle(std::move(request), std::move(reply)); },
                 .lane = Routes::lane,
                 .admit = [&](HttpRequest& request) { return routes.admit(request); }});
  const std::unique_ptr<GrpcServer> grpc =
      settings.grpc ? start_grpc_server(*settings.grpc, routes.inference(), budget, door) : nullptr;
  const DrainedAtTheEnd before_the_server{repository};
  repository.open();
  const Stopwatch watch;
  on_ready(facts_of(repository), {.port = server.port(),
                                  .grpc = grpc ? grpc->port() : std::uint16_t{0},
                                  .pull = stream.receiver ? stream.receiver->pull_endpoint() : "",
                                  .publish = stream.receiver ? stream.receiver->publish_endpoint() : ""});
  wait_for_the_end(settings, repository, stream.learner.get(), server, door, watch);
  be_lame(settings, repository);
  const auto until = Clock::now() + settings.drain;
  server.stop_accepting();
  if (stream.receiver) stream.receiver->stop();
  ServeReport report{.drained = repository.drain(until)};
  stream.finish();
  const auto sent = std::max(until, Clock::now() + std::chrono::milliseconds(500));
  server.finish(sent);
  if (grpc) grpc->finish(sent);
  report.seconds = watch.seconds();
  report.models = facts_of(repository);
  report.http = door.http.account();
  report.grpc = door.grpc.account();
  stream.tell(report);
  return report;
}

}  // namespace superstep::edge
