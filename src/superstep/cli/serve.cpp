// superstep serve MODEL...: models behind the Open Inference Protocol.
#include "superstep/edge/serve.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/system/hangup.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/serve/doors.h"
#include "superstep/cli/serve/limits.h"
#include "superstep/cli/serve/outcome.h"
#include "superstep/cli/serve/stream.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/target/target.h"

namespace superstep::cli {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  superstep serve run/                                the model of a training run\n"
    "  superstep serve peaks=run/ phases=model.onnx        several, under names of your own\n"
    "  superstep serve model.onnx --max-batch 16 --max-delay 200 --workers 2\n"
    "  superstep serve run/ --on cuda                      on a GPU\n"
    "  superstep serve run/ --http '*:8000' --token-file token    for other machines; changes need the "
    "token\n"
    "  superstep serve run/ --pull tcp://detector:31001 --write answers/    frames of a detector\n"
    "  superstep serve run/ --pull tcp://detector:31001 --write answers/ --journal kept/    and none is "
    "lost\n"
    "Then:\n"
    "  curl localhost:8000/v2/models/peaks                 what it takes and gives\n"
    "  curl localhost:8000/metrics                         counts and times, for Prometheus\n"
    "  curl -X POST localhost:8000/v2/repository/models/peaks/load -H 'Authorization: Bearer TOKEN'    "
    "answer with "
    "what is in run/ now\n"
    "  curl -X POST localhost:8000/v2/models/peaks/rollback -H 'Authorization: Bearer TOKEN'    answer with "
    "the "
    "version before\n"
    "It ends when it is asked to (Ctrl-C, SIGTERM), after it has answered what waits; SIGHUP has it read its "
    "models, "
    "tokens and certificates anew. docs/serve.md has "
    "more.";

edge::GrpcSettings grpc_settings_of(const ServeArguments& a, const edge::ServeSettings& settings) {
  const edge::Address address = edge::parse_address(a.grpc);
  return {.address = address.host,
          .port = address.port,
          .most_message_bytes = settings.server.most_body_bytes,
          .memory = settings.memory,
          .most_connections = settings.server.most_connections,
          .handshake_time = settings.server.header_time,
          .idle_time = settings.server.idle_time,
          .server_version = settings.server_version,
          .tls = settings.server.tls};
}

// A worker has weights of its own. On a device one copies its rows while the other computes.
int default_workers(const std::string& target) {
  constexpr int workers_of_a_device = 2;
  return target::pjrt::find_device_target(target) ? workers_of_a_device : thread_count();
}

edge::ServeSettings settings_of(const ServeArguments& a) {
  target::find_target(a.target);
  edge::ServeSettings settings;
  for (const std::string& text : a.models) {
    settings.models.push_back(edge::named_source(text));
    settings.models.back().source.precision = a.precision;
    settings.models.back().source.shapes = a.shapes;
    settings.models.back().source.verify_key = a.verify_key;
  }
  const edge::Address address = edge::parse_address(a.http);
  settings.server.address = address.host;
  settings.server.port = address.port;
  settings.server.threads = a.http_threads;
  settings.server.most_body_bytes = bytes_of(a.body);
  settings.server.most_connections = static_cast<std::size_t>(a.connections);
  settings.server.header_time = milliseconds(a.header_time);
  settings.server.idle_time = milliseconds(a.idle_time);
  settings.server.tls = tls_of(a);
  settings.door = door_of(a);
  settings.memory = bytes_of(a.memory);
  settings.service.target = a.target;
  settings.service.workers = a.workers > 0 ? a.workers : default_workers(a.target);
  settings.service.threads = std::max(1, thread_count() / settings.service.workers);
  settings.service.row_by_row = a.reproducible;
  settings.service.batcher = batcher_of(a);
  settings.deadline = edge::Nanoseconds(static_cast<std::int64_t>(a.deadline * 1e6));
  settings.drain = milliseconds(a.drain);
  settings.lame_duck = milliseconds(a.lame_duck);
  settings.seconds = a.seconds;
  settings.server_version = SUPERSTEP_VERSION;
  if (!a.grpc.empty()) settings.grpc = grpc_settings_of(a, settings);
  add_renewals(a, settings);
  set_stream(a, settings);
  settings.on_reload = [](const std::string& what) { tell(fmt::format("superstep: {}\n", what)); };
  return settings;
}

std::string place(const std::string& address, std::uint16_t port) {
  return fmt::format("{}:{}", address.find(':') != std::string::npos ? "[" + address + "]" : address, port);
}

// What is there, and where: the address on a line of its own, for who reads it.
void print_ready(const edge::ServeSettings& settings, const std::vector<edge::ServedModel>& models,
                 const edge::ServePlaces& places) {
  TextTable table({"model", "version", "weights", "rows per batch", "one row", "a full batch", "plans"});
  for (const edge::ServedModel& model : models)
    table.add_row({model.name, model.version, model.trained ? "trained" : "initial",
                   !model.batched                ? "fixed"
                   : settings.service.row_by_row ? "each alone"
                                                 : fmt::format("1 to {}", model.sizes.back().rows),
                   format_seconds(model.sizes.front().seconds), format_seconds(model.sizes.back().seconds),
                   format_bytes(static_cast<double>(model.plan_bytes))});
  if (!common().quiet)
    fmt::print("{}workers: {}, threads of each: {}\n", table.to_string(), settings.service.workers,
               settings.service.threads);
  fmt::print("ready at {}://{}\n", settings.server.tls ? "https" : "http",
             place(settings.server.address, places.port));
  if (settings.grpc) fmt::print("grpc at {}\n", place(settings.grpc->address, places.grpc));
  if (!places.pull.empty()) fmt::print("frames from {}\n", places.pull);
  if (!places.publish.empty()) fmt::print("answers to frames at {}\n", places.publish);
  flush_standard_output();
}

void serve(const ServeArguments& arguments) {
  const edge::ServeSettings settings = settings_of(arguments);
  warn_of_open_doors(arguments, settings);
  watch_for_hangups();
  const edge::ServeReport report = edge::serve(
      settings, [&](const std::vector<edge::ServedModel>& models, const edge::ServePlaces& places) {
        for (const edge::ServedModel& model : models)
          if (!model.trained)
            tell(fmt::format("superstep: warning: {} has its initial weights: its answers mean nothing\n",
                             model.name));
        for (const edge::ServedModel& model : models)
          if (!model.has_digest)
            tell(fmt::format(
                "superstep: warning: the run of {} has no digest of its weights: whether they are as "
                "they were written is not known (train --resume writes one)\n",
                model.name));
        for (const edge::ServedModel& model : models)
          if (!model.scaled_before.empty())
            tell(
                fmt::format("superstep: warning: the data of {} were scaled before its training ({}), and "
                            "requests are what its network takes: scale them alike\n",
                            model.name, model.scaled_before));
        // To the very end of the program: the account is printed, and the exit status is of what was served.
        [[maybe_unused]] static const auto* const held = new HoldEnd("what waits is answered first");
        print_ready(settings, models, places);
      });
  if (!common().quiet) fmt::print("{}", tables_of(settings, report));
  nlohmann::json models = nlohmann::json::object();
  for (const edge::ServedModel& model : report.models) models[model.name] = model.version;
  write_result(command_result("serve", join(arguments.models, ","),
                              {{"versions", models},
                               {"drained", report.drained},
                               {"workers", settings.service.workers},
                               {"threads", settings.service.threads},
                               {"max_batch", arguments.max_batch}},
                              metrics_of(report), arguments.target));
  require_all_well(arguments, report);
}

// Options of a stream, of learning and of logs that are not asked for.
void refuse_ignored(const CLI::App& command, const ServeArguments& a) {
  refuse_given(command, a.pull.empty() ? "is an option of a stream: --pull ADDRESS" : "",
               {"--scale", "--shared", "--stall"});
  refuse_given(command, a.learn.empty() ? "is an option of learning: --learn DIR" : "",
               {"--learn-when", "--learn-epochs", "--budget", "--regression"});
  refuse_given(command, a.access_log.empty() ? "is an option of --access-log FILE" : "",
               {"--access-log-rate"});
  refuse_given(
      command,
      a.access_log.empty() && a.audit_log.empty() ? "is an option of --access-log and --audit-log" : "",
      {"--log-bytes"});
}

}  // namespace

void declare_serve(CLI::App& command) {
  const auto a = std::make_shared<ServeArguments>();
  command
      .add_option(
          "model", a->models,
          "a run's folder, a model file (.onnx), a workload with its initial weights; NAME=MODEL names it")
      ->required();
  command
      .add_option("--http", a->http,
                  "where to listen: HOST:PORT; port 0 is any that is free; '*:8000' is every interface")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command
      .add_option("--grpc", a->grpc,
                  "answer the same protocol over gRPC, too: HOST:PORT (a build with gRPC's library)")
      ->type_name("ADDRESS");
  command.add_option("--on", a->target, "where to compute: superstep list targets")
      ->type_name("TARGET")
      ->capture_default_str();
  command.add_option("--precision", a->precision, "f32, bf16, or f16 (stored so, computed in f32)")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  command
      .add_option(
          "--shape", a->shapes,
          "shape of a model file's input or value of a symbol: x=1,3,224,224 or batch=4; may be repeated")
      ->type_name("NAME=N,...")
      ->allow_extra_args(false);
  add_operators_option(command);
  declare_queue(command, *a);
  declare_stream(command, *a);
  declare_learning(command, *a);
  declare_door(command, *a);
  declare_limits(command, *a);
  command.footer(examples);
  command.callback([a, &command] {
    refuse_ignored(command, *a);
    serve(*a);
  });
}

}  // namespace superstep::cli
