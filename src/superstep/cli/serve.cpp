// superstep serve MODEL...: models behind the Open Inference Protocol.
#include "superstep/edge/serve.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/option_range.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/hangup.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::vector<std::string> shapes;
  std::string precision = "f32", http = "127.0.0.1:8000", grpc, queue_full = "block", token_file;
  std::string memory = "1G", body = "64M", pull, pull_model, pull_channel, publish, write, journal, stitch,
              positions, learn, regression, learn_when = "each-scan", scale = "1";
  std::int64_t max_batch = 64, queue = 4096;
  double max_delay = 0, deadline = 0, drain = 10, seconds = 0;  // us, ms, s, s
  int learn_epochs = 6;
  double budget = 60;
  double stall = 300;  // s
  bool shared = false, reproducible = false;
  int workers = 0, http_threads = 1, connections = 1024;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep serve run/                                the model of a training run\n"
    "  superstep serve peaks=run/ phases=model.onnx        several, under names of your own\n"
    "  superstep serve model.onnx --max-batch 16 --max-delay 200 --workers 2\n"
    "  superstep serve run/ --http '*:8000' --token-file token    for other machines; changes need the "
    "token\n"
    "  superstep serve run/ --pull tcp://detector:31001 --write answers/    frames of a detector\n"
    "  superstep serve run/ --pull tcp://detector:31001 --write answers/ --journal kept/    and none is "
    "lost\n"
    "Then:\n"
    "  curl localhost:8000/v2/models/peaks                 what it takes and gives\n"
    "  curl localhost:8000/metrics                         counts and times, for Prometheus\n"
    "  curl -X POST localhost:8000/v2/repository/models/peaks/load    answer with what is in run/ now\n"
    "  curl -X POST localhost:8000/v2/models/peaks/rollback           answer with the version before\n"
    "It ends when it is asked to (Ctrl-C, SIGTERM), after it has answered what waits; SIGHUP has it read its "
    "models "
    "anew. docs/serve.md has "
    "more.";

edge::QueueFull queue_full_of(const std::string& name) {
  return name == "drop-old"   ? edge::QueueFull::drop_oldest
         : name == "drop-new" ? edge::QueueFull::refuse
                              : edge::QueueFull::wait;
}

// Options that mean nothing without another one.
void require_sense(const Arguments& a) {
  for (const auto& [given, option] : {std::pair(&a.publish, "--publish"),
                                      {&a.write, "--write"},
                                      {&a.pull_model, "--pull-model"},
                                      {&a.pull_channel, "--pull-channel"},
                                      {&a.journal, "--journal"},
                                      {&a.stitch, "--stitch"},
                                      {&a.positions, "--positions"},
                                      {&a.learn, "--learn"}})
    if (a.pull.empty() && !given->empty())
      throw Error(ErrorCode::invalid_argument, "is of a stream, and there is none", option, "give --pull");
  if (!a.journal.empty() && a.write.empty())
    throw Error(ErrorCode::invalid_argument, "keeps frames until their answers are in files", "--journal",
                "say where these go: --write DIR");
  if (!a.positions.empty() && a.stitch.empty())
    throw Error(ErrorCode::invalid_argument, "is of pictures that are stitched", "--positions",
                "give --stitch");
  if (!a.learn.empty() && a.models.size() != 1)
    throw Error(ErrorCode::invalid_argument, "one model learns, and it is the only one", "--learn");
}

// What is made of scans, beside answers.
void set_scans(const Arguments& a, edge::ServeSettings& settings) {
  if (!a.stitch.empty())
    settings.live = edge::Live::Settings{
        .stitch = edge::stitch_settings_from_text(a.stitch), .folder = a.write, .positions = a.positions};
  if (!a.learn.empty())
    settings.learn = edge::LearnSettings{
        .folder = a.learn,
        .regression = a.regression,
        .each_scan = a.learn_when == "each-scan",
        .epochs = a.learn_epochs,
        .budget = a.budget,
        .pixel = settings.live ? settings.live->stitch.pixel : edge::StitchSettings{}.pixel};
}

edge::GrpcSettings grpc_settings_of(const Arguments& a, const edge::ServeSettings& settings) {
  const edge::Address address = edge::parse_address(a.grpc);
  return {.address = address.host,
          .port = address.port,
          .most_message_bytes = settings.server.most_body_bytes,
          .memory = settings.memory,
          .handshake_time = settings.server.header_time,
          .idle_time = settings.server.idle_time,
          .server_version = settings.server_version};
}

edge::ServeSettings settings_of(const Arguments& a) {
  edge::ServeSettings settings;
  for (const std::string& text : a.models) {
    settings.models.push_back(edge::named_source(text));
    settings.models.back().source.precision = a.precision;
    settings.models.back().source.shapes = a.shapes;
  }
  const edge::Address address = edge::parse_address(a.http);
  settings.server.address = address.host;
  settings.server.port = address.port;
  settings.server.threads = a.http_threads;
  settings.server.most_body_bytes = static_cast<std::size_t>(number_of_bytes(a.body).value_or(0));
  settings.server.most_connections = static_cast<std::size_t>(a.connections);
  settings.memory = static_cast<std::size_t>(number_of_bytes(a.memory).value_or(0));
  settings.service.workers = a.workers > 0 ? a.workers : thread_count();
  settings.service.threads = std::max(1, thread_count() / settings.service.workers);
  settings.service.row_by_row = a.reproducible;
  settings.service.batcher = {.max_batch = a.max_batch,
                              .max_delay = edge::Nanoseconds(static_cast<std::int64_t>(a.max_delay * 1e3)),
                              .queue_rows = a.queue,
                              .queue_bytes = settings.memory,
                              .when_full = queue_full_of(a.queue_full)};
  settings.deadline = edge::Nanoseconds(static_cast<std::int64_t>(a.deadline * 1e6));
  settings.drain = std::chrono::milliseconds(static_cast<std::int64_t>(a.drain * 1e3));
  settings.seconds = a.seconds;
  settings.token_file = a.token_file;
  settings.server_version = SUPERSTEP_VERSION;
  if (!a.grpc.empty()) settings.grpc = grpc_settings_of(a, settings);
  settings.stream = {.pull = a.pull,
                     .publish = a.publish,
                     .shared = a.shared,
                     .folder = a.write,
                     .journal = a.journal,
                     .scale = static_cast<float>(finite_number(a.scale).value_or(1)),
                     .meaning = a.scale == "log"    ? edge::Pixels::logarithm
                                : a.scale == "unit" ? edge::Pixels::unit
                                                    : edge::Pixels::linear,
                     .stall = std::chrono::milliseconds(static_cast<std::int64_t>(a.stall * 1e3)),
                     .most_frame_bytes = settings.server.most_body_bytes,
                     .part_bytes = settings.server.most_body_bytes};
  settings.stream_model = a.pull_model;
  settings.stream.channel = a.pull_channel;
  require_sense(a);
  set_scans(a, settings);
  settings.on_reload = [](const std::string& what) { tell(fmt::format("superstep: {}\n", what)); };
  return settings;
}

std::string place(const std::string& address, std::uint16_t port) {
  return fmt::format("{}:{}", address.find(':') != std::string::npos ? "[" + address + "]" : address, port);
}

// What is there, and where: the address on a line of its own, for who reads it.
void print_ready(const edge::ServeSettings& settings, const std::vector<edge::ServedModel>& models,
                 const edge::ServePlaces& places) {
  TextTable table({"model", "version", "weights", "rows a batch", "one row", "a full batch", "plans"});
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
  fmt::print("ready at http://{}\n", place(settings.server.address, places.port));
  if (settings.grpc) fmt::print("grpc at {}\n", place(settings.grpc->address, places.grpc));
  if (!places.pull.empty()) fmt::print("frames from {}\n", places.pull);
  if (!places.publish.empty()) fmt::print("answers to frames at {}\n", places.publish);
  flush_standard_output();
}

std::string account_table(const edge::ServeReport& report) {
  std::vector<std::string> header{"model", "received"};
  for (const edge::Outcome outcome : edge::all_outcomes) header.push_back(name_of(outcome));
  TextTable table(header);
  for (const edge::ServedModel& model : report.models) {
    std::vector<std::string> row{model.name,
                                 format_count(static_cast<double>(model.account.received.requests))};
    for (const edge::Outcome outcome : edge::all_outcomes)
      row.push_back(format_count(static_cast<double>(model.account.of(outcome).requests)));
    table.add_row(row);
  }
  return table.to_string();
}

std::vector<std::pair<const char*, std::uint64_t>> stream_counts(const edge::StreamAccount& account) {
  std::vector<std::pair<const char*, std::uint64_t>> counts{{"received", account.received}};
  for (const edge::Outcome outcome : edge::all_outcomes)
    if (outcome != edge::Outcome::invalid) counts.emplace_back(name_of(outcome), account.of(outcome));
  counts.insert(counts.end(), {{"corrupt", account.corrupt},
                               {"unread", account.unread},
                               {"duplicate", account.duplicate},
                               {"unfitting", account.unfitting},
                               {"late", account.late},
                               {"missing", account.missing}});
  return counts;
}

std::string stream_table(const edge::ServeReport& report) {
  std::vector<std::string> header{"stream"}, row{"frames"};
  for (const auto& [name, count] : stream_counts(report.stream)) {
    header.push_back(name);
    row.push_back(format_count(static_cast<double>(count)));
  }
  TextTable table(header);
  table.add_row(row);
  std::string text = table.to_string();
  for (const auto& [why, many] : report.stream.reasons)
    text += fmt::format("not used, {} of frames: {}\n", many, why);
  for (const std::string& file : report.files) text += fmt::format("written to {}\n", file);
  if (report.stream.unwritten_bytes > 0)
    text += fmt::format("{} of answers are in no file: there was no room for them\n",
                        format_bytes(static_cast<double>(report.stream.unwritten_bytes)));
  return text;
}

std::vector<Metric> metrics_of(const edge::ServeReport& report) {
  std::vector<Metric> metrics{{.name = "served_for", .value = report.seconds, .unit = "s"}};
  for (const edge::ServedModel& model : report.models) {
    const auto add = [&](std::string_view what, const edge::Tally& tally) {
      metrics.push_back({.name = fmt::format("{}_requests_{}", model.name, what),
                         .value = static_cast<double>(tally.requests),
                         .unit = ""});
      metrics.push_back({.name = fmt::format("{}_rows_{}", model.name, what),
                         .value = static_cast<double>(tally.rows),
                         .unit = ""});
    };
    add("received", model.account.received);
    for (const edge::Outcome outcome : edge::all_outcomes) add(name_of(outcome), model.account.of(outcome));
  }
  for (const auto& [name, count] : stream_counts(report.stream))
    metrics.push_back(
        {.name = fmt::format("frames_{}", name), .value = static_cast<double>(count), .unit = ""});
  metrics.push_back({.name = "answers_unwritten",
                     .value = static_cast<double>(report.stream.unwritten_bytes),
                     .unit = "B"});
  return metrics;
}

// Frames that were taken in and have no answer where it was to be, though nobody allowed that.
void require_no_loss(const Arguments& a, const edge::ServeReport& report) {
  if (!report.drained)
    throw Error(ErrorCode::io, "not all that waited could be answered in time", "--drain",
                "those who asked were told so");
  if (!report.stream_failure.empty())
    throw Error(ErrorCode::io, report.stream_failure, "the stream",
                "frames after it have no answer, or none in a file");
  const edge::StreamAccount& stream = report.stream;
  const std::uint64_t allowed =
      a.queue_full == "block" ? 0 : stream.of(edge::Outcome::refused) + stream.of(edge::Outcome::dropped);
  const std::uint64_t lost = stream.of(edge::Outcome::refused) + stream.of(edge::Outcome::dropped) +
                             stream.of(edge::Outcome::failed) + stream.of(edge::Outcome::closed) - allowed;
  if (lost > 0)
    throw Error(ErrorCode::io, fmt::format("{} frames have no answer", lost), "the stream",
                "the table says what became of them");
  if (const std::uint64_t lost_here = stream.lost_here(); lost_here > 0)
    throw Error(ErrorCode::io, fmt::format("{} of the frames that came could not be used", lost_here),
                "the stream", "each reason is said above, and in .account.json beside the answers");
}

void serve(const Arguments& arguments) {
  const edge::ServeSettings settings = settings_of(arguments);
  watch_for_hangups();
  const edge::ServeReport report = edge::serve(
      settings, [&](const std::vector<edge::ServedModel>& models, const edge::ServePlaces& places) {
        for (const edge::ServedModel& model : models)
          if (!model.trained)
            tell(fmt::format("superstep: warning: {} has its initial weights: its answers mean nothing\n",
                             model.name));
        // To the very end of the program: the account is printed, and the exit status is of what was served.
        [[maybe_unused]] static const auto* const held = new HoldEnd("what waits is answered first");
        print_ready(settings, models, places);
      });
  if (!common().quiet)
    fmt::print("{}{}", account_table(report), report.drained ? "all that was taken in was answered\n" : "");
  if (!common().quiet && !arguments.pull.empty()) fmt::print("{}", stream_table(report));
  nlohmann::json models = nlohmann::json::object();
  for (const edge::ServedModel& model : report.models) models[model.name] = model.version;
  write_result(command_result("serve", join(arguments.models, ","),
                              {{"versions", models},
                               {"drained", report.drained},
                               {"workers", settings.service.workers},
                               {"threads", settings.service.threads},
                               {"max_batch", arguments.max_batch}},
                              metrics_of(report)));
  require_no_loss(arguments, report);
}

void declare_queue(CLI::App& command, Arguments& a) {
  command.add_option("--max-batch", a.max_batch, "rows that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--max-delay", a.max_delay,
                  "microseconds that an idle worker waits for more rows than there are")
      ->type_name("US")
      ->check(number_from(0, 1e7))
      ->capture_default_str();
  command.add_option("--queue", a.queue, "rows that may wait, of each model")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command
      .add_option(
          "--queue-full", a.queue_full,
          "then a stream is held back and requests are refused with status 429 (block), both are refused "
          "(drop-new), or the oldest go (drop-old)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"block", "drop-new", "drop-old"}))
      ->capture_default_str();
  command
      .add_option("--deadline", a.deadline,
                  "milliseconds after which a request that still waits is given up (status 504); 0: none. A "
                  "request's own parameter 'timeout', in microseconds, goes before it")
      ->type_name("MS")
      ->check(number_from(0, 3.6e6))
      ->capture_default_str();
  command.add_flag("--reproducible", a.reproducible,
                   "compute every row alone: its answer has the same bits whatever came beside it");
  command
      .add_option(
          "--workers", a.workers,
          "that compute side by side, each with its own plans; they share --threads (default: as many)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

void declare_stream(CLI::App& command, Arguments& a) {
  command
      .add_option(
          "--pull", a.pull,
          "take frames from a detector: tcp://HOST:31001 (DECTRIS' stream version 2, or raw frames), or "
          "from Kafka: kafka://HOST:9092/TOPIC?group=NAME")
      ->type_name("ADDRESS");
  command.add_option("--pull-model", a.pull_model, "the model that answers frames (default: the only one)")
      ->type_name("NAME");
  command
      .add_option("--pull-channel", a.pull_channel,
                  "of frames that have several (one for each threshold) the one to read: threshold_1")
      ->type_name("NAME");
  command
      .add_option(
          "--scale", a.scale,
          "of pixels, before the model has them; log: it has log(1 + pixel); unit: each frame's from 0 to 1")
      ->type_name("X|log|unit")
      ->check(CLI::Number | CLI::IsMember({"log", "unit"}))
      ->capture_default_str();
  command
      .add_option("--publish", a.publish,
                  "publish answers to frames: tcp://*:31002, or kafka://HOST:9092/TOPIC")
      ->type_name("ADDRESS");
  command
      .add_option(
          "--write", a.write,
          "write answers to frames to DIR/SERIES-0001.h5 and on, and what was missing to DIR/SERIES.json")
      ->type_name("DIR");
  command.add_flag("--shared", a.shared,
                   "this is one of several servers of the stream: what comes to others is not missing; "
                   "'superstep account DIR...' joins what they say");
  command
      .add_option(
          "--journal", a.journal,
          "keep frames in DIR until their answers are written, and go on there after any end: none that was "
          "acknowledged is lost. It needs a sender that waits for that: superstep stream --acknowledge")
      ->type_name("DIR");
  command
      .add_option(
          "--stitch", a.stitch,
          "one growing picture of all frames, at /live and in --write DIR/SERIES.cxi and .tiff: pixel=10nm, "
          "crop=12 (px of a window's middle), mean=removed or kept (of each window's phase), output=NAME")
      ->type_name("NAME=X,...");
  command
      .add_option("--positions", a.positions,
                  "of the scan, where frames bring none: a table with lines FRAME,Y,X in metres")
      ->type_name("FILE.csv");
  command
      .add_option("--stall", a.stall,
                  "end a series of which nothing came for so many seconds; 0: wait for ever")
      ->type_name("S")
      ->check(number_from(0, 1e7))
      ->capture_default_str();
}

void declare_learning(CLI::App& command, Arguments& a) {
  command
      .add_option("--learn", a.learn,
                  "learn from each scan when it has ended, and serve what proves better; versions, labelled "
                  "scans and "
                  "what happened are in DIR. For runs of ptychonn-128 and braggnn")
      ->type_name("DIR");
  command
      .add_option(
          "--learn-when", a.learn_when,
          "each-scan, or on-drift: when errors against labels have risen, or POST /learn asked for it")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"each-scan", "on-drift"}))
      ->capture_default_str();
  command.add_option("--learn-epochs", a.learn_epochs, "over the newest scan and as much of earlier ones")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command.add_option("--budget", a.budget, "seconds that a training may take")
      ->type_name("S")
      ->check(number_from(1, 1e6))
      ->capture_default_str();
  command
      .add_option("--regression", a.regression,
                  "a labelled scan (diff, phase, position) on which new weights must not be worse")
      ->type_name("FILE.h5");
}

void declare_limits(CLI::App& command, Arguments& a) {
  command.add_option("--memory", a.memory, "that requests on their way may take in all")
      ->type_name("BYTES")
      ->check(bytes())
      ->capture_default_str();
  command.add_option("--body", a.body, "the largest request")
      ->type_name("BYTES")
      ->check(bytes())
      ->capture_default_str();
  command
      .add_option("--connections", a.connections,
                  "at the same time; one more takes the place of the one that is idle longest")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--http-threads", a.http_threads, "that read requests and write answers")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--drain", a.drain, "seconds to answer what waits when it is asked to stop")
      ->type_name("S")
      ->check(number_from(0, 3600))
      ->capture_default_str();
  command.add_option("--for", a.seconds, "stop by itself after so many seconds")
      ->type_name("S")
      ->check(number_from(0, 1e9));
}

}  // namespace

void declare_serve(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
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
  command
      .add_option("--token-file", a->token_file,
                  "holds the token that changes of models need; without it they are for this machine alone")
      ->type_name("FILE");
  command.add_option("--precision", a->precision, "f32, bf16, or f16 (stored so, computed in f32)")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  command.add_option("--shape", a->shapes, "of model files: input=EXTENTS or symbol=N; may be repeated")
      ->type_name("NAME=N,...")
      ->allow_extra_args(false);
  declare_queue(command, *a);
  declare_stream(command, *a);
  declare_learning(command, *a);
  declare_limits(command, *a);
  command.footer(examples);
  command.callback([a] { serve(*a); });
}

}  // namespace superstep::cli
