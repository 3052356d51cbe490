// superstep stream WORKLOAD|FILE: a detector that is not there.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/serve/curve_options.h"
#include "superstep/cli/shared/latencies.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/edge/kafka/kafka.h"
#include "superstep/edge/stream/detector.h"
#include "superstep/edge/stream/frames.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string what, answers, dataset, to = "tcp://127.0.0.1:31001", format = "stream2", series = "series",
                                      compress = "none", arrive = "constant", faults;
  double rate = 1000, patience = 30;
  bool acknowledge = false;
  CurveArguments curve;
  std::int64_t frames = 10'000, different = 1024, burst = 64, seed = 1;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep stream braggnn --rate 2000 --frames 100000      patches of simulated peaks\n"
    "  superstep stream scan.h5 --dataset data --to 'tcp://*:31001' --series scan-7\n"
    "  superstep stream braggnn --faults drop=1e-3,dup=1e-3,corrupt=1e-4,reorder=8\n"
    "  superstep serve run/ --pull tcp://127.0.0.1:31001         takes them\n"
    "  superstep stream braggnn --answers tcp://127.0.0.1:31002  how long answers take that --publish "
    "publishes\n"
    "What is dropped, doubled and damaged is drawn by --seed and counted, so that a receiver's account can "
    "be\n"
    "held against it: it must miss what was dropped and what was damaged.";

StreamEnds ends_of(const Arguments& a) {
  StreamEnds ends{.listen = !edge::is_kafka(a.to)};
  if (!a.answers.empty())
    (edge::listens_at(edge::SocketKind::subscribe, a.answers) ? ends.listen : ends.connect) = true;
  return ends;
}

edge::DetectorSettings settings_of(const Arguments& a) {
  return {.to = a.to,
          .format = edge::wire_format_from_name(a.format),
          .compression = a.compress == "none" ? "" : a.compress,
          .series = a.series,
          .frames = static_cast<std::uint64_t>(a.frames),
          .rate = a.rate,
          .pace = a.arrive == "poisson" ? edge::Pace::poisson
                  : a.arrive == "burst" ? edge::Pace::burst
                                        : edge::Pace::constant,
          .burst = static_cast<std::uint64_t>(a.burst),
          .faults = edge::faults_from_text(a.faults),
          .seed = static_cast<std::uint64_t>(a.seed),
          .answers = a.answers,
          .curve = curve_of(a.curve, ends_of(a)),
          .acknowledge = a.acknowledge,
          .patience = a.patience};
}

void print(const Arguments& a, const Tensor& pixels, const edge::DetectorReport& report) {
  const double rate = static_cast<double>(a.frames) / report.seconds;
  const double bytes = static_cast<double>(pixels.byte_count()) / static_cast<double>(pixels.shape()[0]);
  const auto count = [](std::uint64_t value) { return format_count(static_cast<double>(value)); };
  fmt::print("{}: {} frames of {} ({}) in {}: {} frames/s, {}/s\n", a.series,
             format_count(static_cast<double>(a.frames)), name_of(pixels.type()), format_bytes(bytes),
             format_seconds(report.seconds), format_count(rate), format_bytes(rate * bytes));
  fmt::print("sent {}, dropped {}, twice {}, corrupt {}, out of order {}\n", count(report.sent),
             count(report.dropped), count(report.twice), count(report.corrupt), count(report.reordered));
  fmt::print("held back by the receiver {} times; 99 % were at most {} late\n", count(report.held_back),
             format_seconds(report.lateness_p99));
  if (!a.answers.empty())
    fmt::print(
        "answers to {}, none to {}; from when a frame was due to when its answer came: p50 {}, p90 {}, p99 "
        "{}, p99.9 {}, "
        "largest {}\n",
        count(report.latencies.size()), count(report.unanswered), percentile(report.latencies, 0.5),
        percentile(report.latencies, 0.9), percentile(report.latencies, 0.99),
        percentile(report.latencies, 0.999),
        report.latencies.empty() ? "-" : format_seconds(report.latencies.back()));
  if (a.acknowledge)
    fmt::print("all were acknowledged; sent again for want of it: {}\n", count(report.sent_again));
  if (a.rate > 0 && rate < 0.99 * a.rate)
    fmt::print("note: {} frames/s were asked for\n", format_count(a.rate));
}

void stream(const Arguments& arguments) {
  edge::DetectorSettings settings = settings_of(arguments);
  const auto [pixels, positions] =
      edge::frames_of(arguments.what, arguments.dataset, std::min(arguments.different, arguments.frames),
                      settings.seed, thread_count());
  settings.positions = positions;
  const edge::DetectorReport report = edge::send_series(pixels, settings);
  if (!common().quiet) print(arguments, pixels, report);
  const auto metric = [](const char* name, double value, const char* unit) {
    return Metric{.name = name, .value = value, .unit = unit};
  };
  std::vector<Metric> metrics{
      metric("frames_rate", static_cast<double>(arguments.frames) / report.seconds, "frames/s"),
      metric("frames", static_cast<double>(arguments.frames), ""),
      metric("sent", static_cast<double>(report.sent), ""),
      metric("dropped", static_cast<double>(report.dropped), ""),
      metric("twice", static_cast<double>(report.twice), ""),
      metric("corrupt", static_cast<double>(report.corrupt), ""),
      metric("sent_again", static_cast<double>(report.sent_again), ""),
      metric("held_back", static_cast<double>(report.held_back), ""),
      metric("lateness_p99", report.lateness_p99, "s")};
  if (!arguments.answers.empty()) {
    metrics.push_back(metric("answered", static_cast<double>(report.latencies.size()), ""));
    metrics.push_back(metric("unanswered", static_cast<double>(report.unanswered), ""));
    add_latencies(report.latencies, metrics);
  }
  write_result(command_result("stream", arguments.what,
                              {{"format", arguments.format},
                               {"compress", arguments.compress},
                               {"series", arguments.series},
                               {"rate", arguments.rate},
                               {"arrive", arguments.arrive},
                               {"faults", arguments.faults},
                               {"seed", arguments.seed},
                               {"shape", pixels.shape().extents()}},
                              metrics));
  if (!arguments.answers.empty() && report.latencies.empty())
    throw Error(ErrorCode::io, "no frame was answered", arguments.answers,
                "is it where the server that takes the frames has its --publish?");
}

void declare_source(CLI::App& command, Arguments& a) {
  command
      .add_option("what", a.what,
                  "a workload, whose data are generated, or a file of arrays (.h5, .npy, .npz)")
      ->required();
  command.add_option("--dataset", a.dataset, "array whose rows are frames, in a file with several")
      ->type_name("NAME");
  command.add_option("--frames", a.frames, "frames in the series")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, static_cast<std::int64_t>(edge::most_frames)))
      ->capture_default_str();
  command.add_option("--different", a.different, "most frames that differ; they are sent round and round")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--series", a.series, "its name")->type_name("NAME")->capture_default_str();
  command.add_option("--seed", a.seed, "seed of the data and of the faults")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
}

}  // namespace

void declare_stream(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  declare_source(command, *a);
  command
      .add_option("--to", a->to,
                  "where receivers connect to; 'tcp://*:31001' is every interface; kafka://HOST:9092/TOPIC "
                  "sends there")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command.add_option("--format", a->format, "stream2 (DECTRIS' stream version 2) or raw (superstep-frame/1)")
      ->check(CLI::IsMember({"stream2", "raw"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  command.add_option("--compress", a->compress, "pixels in stream2: none, lz4, bslz4")
      ->check(CLI::IsMember({"none", "lz4", "bslz4"}))
      ->type_name("HOW")
      ->capture_default_str();
  command.add_option("--rate", a->rate, "frames per second; 0: as fast as they are taken")
      ->type_name("R")
      ->check(number_from(0, 1e7))
      ->capture_default_str();
  command.add_option("--arrive", a->arrive, "constant, poisson, burst: --burst frames at once")
      ->check(CLI::IsMember({"constant", "poisson", "burst"}))
      ->type_name("HOW")
      ->capture_default_str();
  command.add_option("--burst", a->burst, "frames of a burst")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--faults", a->faults,
                  "drop=SHARE, dup=SHARE, corrupt=SHARE, reorder=N, stall=SECONDS@EVERY, separated by commas")
      ->type_name("FAULT,...");
  command
      .add_option("--answers", a->answers,
                  "address where the server publishes answers (its --publish), to time them from when frames "
                  "were due")
      ->type_name("ADDRESS");
  command.add_flag("--acknowledge", a->acknowledge,
                   "send again what the receiver has not said to keep: superstep serve --journal does");
  command.add_option("--patience", a->patience, "seconds to wait for a receiver")
      ->type_name("S")
      ->check(number_from(0, 86400))
      ->capture_default_str();
  declare_curve(command, a->curve);
  command.footer(examples);
  command.callback([a] { stream(*a); });
}

}  // namespace superstep::cli
