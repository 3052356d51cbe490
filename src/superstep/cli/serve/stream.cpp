#include "superstep/cli/serve/stream.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/cli/command.h"
#include "superstep/edge/kafka/kafka.h"

namespace superstep::cli {
namespace {

// Options that mean nothing without another one.
void require_sense(const ServeArguments& a) {
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
void set_scans(const ServeArguments& a, edge::ServeSettings& settings) {
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

StreamEnds ends_of(const ServeArguments& a) {
  StreamEnds ends;
  const auto add = [&](edge::SocketKind kind, const std::string& address) {
    if (address.empty() || edge::is_kafka(address)) return;
    (edge::listens_at(kind, address) ? ends.listen : ends.connect) = true;
  };
  add(edge::SocketKind::pull, a.pull);
  add(edge::SocketKind::publish, a.publish);
  return ends;
}

}  // namespace

void set_stream(const ServeArguments& a, edge::ServeSettings& settings) {
  const std::shared_ptr<edge::Curve> curve = curve_of(a.curve, ends_of(a));
  settings.stream = {.pull = a.pull,
                     .publish = a.publish,
                     .curve = curve,
                     .channel = a.pull_channel,
                     .shared = a.shared,
                     .folder = a.write,
                     .journal = a.journal,
                     .scale = static_cast<float>(finite_number(a.scale).value_or(1)),
                     .meaning = a.scale == "log"    ? edge::Pixels::logarithm
                                : a.scale == "unit" ? edge::Pixels::unit
                                                    : edge::Pixels::linear,
                     .stall = milliseconds(a.stall),
                     .most_frame_bytes = settings.server.most_body_bytes,
                     .part_bytes = settings.server.most_body_bytes};
  settings.stream_model = a.pull_model;
  require_sense(a);
  set_scans(a, settings);
  if (curve && curve->clients())
    settings.renewals.push_back({"--curve-clients", [curve, files = a.curve.clients](auto&, auto&) {
                                   curve->let_in(edge::read_curve_clients({files.begin(), files.end()}));
                                 }});
}

void declare_stream(CLI::App& command, ServeArguments& a) {
  command
      .add_option("--pull", a.pull,
                  "take frames from tcp://HOST:31001 (DECTRIS stream v2, raw) or kafka://HOST:9092/TOPIC")
      ->type_name("ADDRESS");
  command.add_option("--pull-model", a.pull_model, "the model that answers frames (default: the only one)")
      ->type_name("NAME");
  command
      .add_option("--pull-channel", a.pull_channel,
                  "the channel to read where frames have several (one per threshold): threshold_1")
      ->type_name("NAME");
  command
      .add_option(
          "--scale", a.scale,
          "applied to pixels before the model: a factor, log: log(1 + pixel), unit: each frame from 0 to 1")
      ->type_name("X|log|unit")
      ->check((CLI::Number | CLI::IsMember({"log", "unit"})).description(""))
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
                   "one of several servers of the stream: frames that others got are not counted as missing");
  command
      .add_option("--journal", a.journal,
                  "keep frames in DIR until they are answered, and go on there after a crash: none is lost")
      ->type_name("DIR");
  command
      .add_option("--stitch", a.stitch,
                  "assemble one picture of all frames: pixel=10nm, crop=12, mean=removed|kept, output=NAME")
      ->type_name("NAME=X,...");
  command
      .add_option("--positions", a.positions,
                  "positions of the scan where frames carry none: a table with lines FRAME,Y,X in meters")
      ->type_name("FILE.csv");
  command
      .add_option("--stall", a.stall,
                  "end a series of which nothing came for so many seconds; 0: wait for ever")
      ->type_name("S")
      ->check(number_from(0, 1e7))
      ->capture_default_str();
  declare_curve(command, a.curve);
}

void declare_learning(CLI::App& command, ServeArguments& a) {
  command
      .add_option(
          "--learn", a.learn,
          "train on each scan that has ended and serve what is better (ptychonn-128, braggnn); kept in DIR")
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
                  "a labeled scan (diff, phase, position) on which new weights must not be worse")
      ->type_name("FILE.h5");
}

}  // namespace superstep::cli
