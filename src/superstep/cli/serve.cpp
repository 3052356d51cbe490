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
  bool shared = false, reproducible = false, allow_not_finite = false;
  int workers = 0, http_threads = 1, connections = 1024;
  std::vector<std::string> hosts;
  std::string verify_key, protect, tls_certificate, tls_key, tls_client_ca, access_log, audit_log,
      log_bytes = "16M", peer_memory;
  int peer_connections = 0, peer_requests = 256, access_log_rate = 1000;
  double header_time = 10, idle_time = 300, lame_duck = 0;  // s
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
    "  curl -X POST localhost:8000/v2/repository/models/peaks/load -H 'Authorization: Bearer TOKEN'    "
    "answer with "
    "what is in run/ now\n"
    "  curl -X POST localhost:8000/v2/models/peaks/rollback -H 'Authorization: Bearer TOKEN'    answer with "
    "the "
    "version before\n"
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

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

std::size_t bytes_of(const std::string& text) {
  return static_cast<std::size_t>(number_of_bytes(text).value_or(0));
}

edge::TlsFiles tls_of(const Arguments& a) {
  const edge::TlsFiles files{
      .certificate = a.tls_certificate, .key = a.tls_key, .client_ca = a.tls_client_ca};
  if (files) static_cast<void>(edge::read_tls(files));
  return files;
}

edge::Tokens tokens_of(const Arguments& a) {
  edge::Tokens tokens = a.token_file.empty() ? edge::Tokens() : edge::Tokens::read(a.token_file);
  if (a.protect.empty()) return tokens;
  const auto scopes = edge::scopes_of(a.protect);
  if (!scopes)
    throw Error(ErrorCode::invalid_argument, "is no list of read, infer, change", "--protect " + a.protect);
  if (tokens.empty())
    throw Error(ErrorCode::invalid_argument, "nobody could come in without a token", "--protect",
                "give --token-file FILE with tokens");
  tokens.protect(*scopes);
  return tokens;
}

// One address never has all: half, where nothing else is said.
edge::DoorSettings door_of(const Arguments& a) {
  edge::DoorSettings door{.tokens = tokens_of(a), .hosts = a.hosts};
  door.peers.connections =
      static_cast<std::size_t>(a.peer_connections > 0 ? a.peer_connections : std::max(1, a.connections / 2));
  door.peers.requests = static_cast<std::size_t>(a.peer_requests);
  door.peers.bytes = a.peer_memory.empty() ? bytes_of(a.memory) / 2 : bytes_of(a.peer_memory);
  door.access = {.file = a.access_log,
                 .bytes = bytes_of(a.log_bytes),
                 .lines_per_second = static_cast<std::uint64_t>(a.access_log_rate)};
  door.audit = {.file = a.audit_log, .bytes = bytes_of(a.log_bytes)};
  return door;
}

bool is_open_to_others(const std::string& address) { return !edge::Address{address, 0}.is_loopback(); }

// Addresses that others reach: what they may do there, and who reads along.
void warn_of_open_doors(const edge::ServeSettings& settings) {
  const bool open = is_open_to_others(settings.server.address) ||
                    (settings.grpc && is_open_to_others(settings.grpc->address));
  if (!open) return;
  const edge::Tokens& tokens = settings.door.tokens;
  const bool known_alone = !settings.server.tls.client_ca.empty();
  if (!known_alone && (!tokens.needs(edge::Scope::infer) || !tokens.needs(edge::Scope::read)))
    tell(
        "superstep: warning: whoever reaches this server may ask its models and read what it shows: "
        "--protect "
        "read,infer with --token-file, or --tls-client-ca, lets in those alone that are meant\n");
  if (!settings.server.tls && !tokens.empty())
    tell(
        "superstep: warning: tokens and data go over the network in the clear: --tls-cert and --tls-key "
        "encrypt them\n");
}

edge::GrpcSettings grpc_settings_of(const Arguments& a, const edge::ServeSettings& settings) {
  const edge::Address address = edge::parse_address(a.grpc);
  return {.address = address.host,
          .port = address.port,
          .most_message_bytes = settings.server.most_body_bytes,
          .memory = settings.memory,
          .handshake_time = settings.server.header_time,
          .idle_time = settings.server.idle_time,
          .server_version = settings.server_version,
          .tls = settings.server.tls};
}

edge::ServeSettings settings_of(const Arguments& a) {
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
  settings.service.workers = a.workers > 0 ? a.workers : thread_count();
  settings.service.threads = std::max(1, thread_count() / settings.service.workers);
  settings.service.row_by_row = a.reproducible;
  settings.service.batcher = {.max_batch = a.max_batch,
                              .max_delay = edge::Nanoseconds(static_cast<std::int64_t>(a.max_delay * 1e3)),
                              .queue_rows = a.queue,
                              .queue_bytes = settings.memory,
                              .when_full = queue_full_of(a.queue_full)};
  settings.deadline = edge::Nanoseconds(static_cast<std::int64_t>(a.deadline * 1e6));
  settings.drain = milliseconds(a.drain);
  settings.lame_duck = milliseconds(a.lame_duck);
  settings.seconds = a.seconds;
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
  fmt::print("ready at {}://{}\n", settings.server.tls ? "https" : "http",
             place(settings.server.address, places.port));
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

std::uint64_t refused_of(const edge::DoorAccount& account) {
  return account.requests - account.under_way - account.of(edge::RequestEnd::answered) - account.unanswered();
}

// What came to the doors, whether or not a model heard of it.
std::string door_table(const edge::ServeSettings& settings, const edge::ServeReport& report) {
  const auto number = [](std::uint64_t count) { return format_count(static_cast<double>(count)); };
  TextTable table({"door", "connections", "requests", "answered", "refused", "slow", "lost", "unsent"});
  std::string reasons;
  for (const auto& [name, account] : {std::pair("http", &report.http), {"grpc", &report.grpc}}) {
    if (account == &report.grpc && !settings.grpc) continue;
    const auto of = [&](edge::RequestEnd end) { return number(account->of(end)); };
    table.add_row({name, account == &report.grpc ? "-" : number(account->connections),
                   number(account->requests), of(edge::RequestEnd::answered), number(refused_of(*account)),
                   of(edge::RequestEnd::slow), of(edge::RequestEnd::lost), of(edge::RequestEnd::unsent)});
    for (const auto& [key, count] : account->request_ends)
      if (key.first != edge::RequestEnd::answered || key.second >= 400)
        reasons +=
            fmt::format("{}: {} {} with status {}\n", name, number(count), name_of(key.first), key.second);
    for (const edge::ConnectionEnd end : edge::all_connection_ends)
      if (account->of(end) > 0 && end != edge::ConnectionEnd::closed && end != edge::ConnectionEnd::idle &&
          end != edge::ConnectionEnd::stopped)
        reasons +=
            fmt::format("{}: {} connections ended as {}\n", name, number(account->of(end)), name_of(end));
  }
  return table.to_string() + reasons;
}

// Only what is true of every request that came.
std::string closing_words(const edge::ServeReport& report) {
  if (!report.drained) return "";
  const std::uint64_t unanswered =
      report.http.unanswered() + report.grpc.unanswered() + report.http.under_way + report.grpc.under_way;
  if (unanswered > 0)
    return fmt::format("{} requests have no answer: who asked left, or was too slow\n",
                       format_count(static_cast<double>(unanswered)));
  const std::uint64_t refused = refused_of(report.http) + refused_of(report.grpc);
  if (refused > 0)
    return fmt::format("all that was taken in was answered; {} requests were refused at the door\n",
                       format_count(static_cast<double>(refused)));
  return "all that was taken in was answered\n";
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
  for (const auto& [name, account] : {std::pair("http", &report.http), {"grpc", &report.grpc}})
    for (const auto& [what, count] : {std::pair("requests", account->requests),
                                      {"answered", account->of(edge::RequestEnd::answered)},
                                      {"refused", refused_of(*account)},
                                      {"unanswered", account->unanswered()}})
      metrics.push_back(
          {.name = fmt::format("{}_{}", name, what), .value = static_cast<double>(count), .unit = ""});
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

// Answers that are no numbers, of inputs that are: the model is broken, or asked what it cannot compute.
void require_finite(const Arguments& a, const edge::ServeReport& report) {
  for (const edge::ServedModel& model : report.models) {
    if (model.outside_of_training > 0)
      tell(fmt::format(
          "superstep: warning: {}: {} rows had inputs outside of the range that the training had\n",
          model.name, format_count(static_cast<double>(model.outside_of_training))));
    if (model.not_finite.inputs > 0)
      tell(fmt::format("superstep: warning: {}: {} rows had NaN or infinity in, and out\n", model.name,
                       format_count(static_cast<double>(model.not_finite.inputs))));
    if (model.not_finite.outputs == 0) continue;
    const std::string what = fmt::format("{} rows of answers are not finite though their inputs are",
                                         format_count(static_cast<double>(model.not_finite.outputs)));
    if (!a.allow_not_finite)
      throw Error(ErrorCode::diverged, what, model.name,
                  "look at the model's weights; --allow-not-finite takes such answers as they are");
    tell(fmt::format("superstep: warning: {}: {}\n", model.name, what));
  }
}

void serve(const Arguments& arguments) {
  const edge::ServeSettings settings = settings_of(arguments);
  warn_of_open_doors(settings);
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
        // To the very end of the program: the account is printed, and the exit status is of what was served.
        [[maybe_unused]] static const auto* const held = new HoldEnd("what waits is answered first");
        print_ready(settings, models, places);
      });
  if (!common().quiet)
    fmt::print("{}{}{}", account_table(report), door_table(settings, report), closing_words(report));
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
  require_finite(arguments, report);
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
  command.add_flag("--allow-not-finite", a.allow_not_finite,
                   "end with 0 where answers were NaN or infinite, too; they are counted in any case");
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

void declare_door(CLI::App& command, Arguments& a) {
  command
      .add_option(
          "--token-file", a.token_file,
          "tokens, a line each: TOKEN, or TOKEN SCOPES NAME with scopes of read,infer,change. Changes of "
          "models need one; without the file there are none")
      ->type_name("FILE");
  command
      .add_option("--protect", a.protect,
                  "what needs a token, beside changes: read (what there is, metrics, pages), infer (a model)")
      ->type_name("SCOPES");
  command
      .add_option("--host", a.hosts,
                  "a name that it is reached under, beside addresses and the machine's own; '*': any. May be "
                  "repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--tls-cert", a.tls_certificate,
                  "HTTPS, and gRPC with TLS: the certificate and its chain, PEM")
      ->type_name("FILE");
  command.add_option("--tls-key", a.tls_key, "its key, PEM")->type_name("FILE");
  command
      .add_option("--tls-client-ca", a.tls_client_ca,
                  "let those in alone who show a certificate that one of these signed, PEM")
      ->type_name("FILE");
  command
      .add_option(
          "--verify-key", a.verify_key,
          "serve, and swap to, what this public key (Ed25519, PEM) has signed alone: SHA256SUMS of a run, "
          "FILE.sha256 of a model file")
      ->type_name("FILE");
  command.add_option("--access-log", a.access_log, "every request as a line of JSON")->type_name("FILE");
  command
      .add_option("--access-log-rate", a.access_log_rate,
                  "lines per second at most; more are counted there. 0: all are written")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command
      .add_option("--audit-log", a.audit_log,
                  "every change of what is served, who asked for it and what came of it, as a line of JSON")
      ->type_name("FILE");
  command.add_option("--log-bytes", a.log_bytes, "of a log; then it goes on in a new one, and five are kept")
      ->type_name("BYTES")
      ->check(bytes())
      ->capture_default_str();
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
                  "at the same time; one more takes the place of who is slowest, or idle longest")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--peer-connections", a.peer_connections,
                  "of one address (default: half of --connections; behind a proxy all come from one)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--peer-requests", a.peer_requests, "of one address that are under way at the same time")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--peer-memory", a.peer_memory, "of --memory that one address may take (default: half)")
      ->type_name("BYTES")
      ->check(bytes());
  command
      .add_option("--header-time", a.header_time,
                  "seconds that a request's header may take, and its body beside one for each MB")
      ->type_name("S")
      ->check(number_from(0.01, 3600))
      ->capture_default_str();
  command
      .add_option("--idle-time", a.idle_time, "seconds after which a connection that asks nothing is closed")
      ->type_name("S")
      ->check(number_from(0.01, 1e6))
      ->capture_default_str();
  command.add_option("--http-threads", a.http_threads, "that read requests and write answers")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option(
          "--lame-duck", a.lame_duck,
          "seconds that it says that it is not ready, and still answers, before it stops: for those in "
          "front of it to send requests elsewhere")
      ->type_name("S")
      ->check(number_from(0, 3600));
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
  declare_door(command, *a);
  declare_limits(command, *a);
  command.footer(examples);
  command.callback([a] { serve(*a); });
}

}  // namespace superstep::cli
