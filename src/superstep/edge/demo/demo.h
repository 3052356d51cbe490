// An experiment that is not there, end to end: scans whose probe drifts, a detector that sends them, a server
// that answers, stitches and learns, and what came of it beside a server that had not learnt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/edge/live/canvas.h"
#include "superstep/edge/serve.h"

namespace superstep::edge {

struct DemoSettings {
  std::filesystem::path folder;  // is made; throws Error where something is in it
  int scans = 3;
  std::int64_t points = 600;           // of a scan
  double rate = 300;                   // frames per second
  double width = 70, wider = 10;       // nm: of the probe, and by how much it is wider from scan to scan
  double defocus = 0.3, more = 0.1;    // waves, and from scan to scan
  int first_epochs = 25, epochs = 16;  // of the training before the scans, and after each
  std::uint64_t seed = 1;
  int threads = 2;
  std::uint16_t port = 0;  // of HTTP; 0: any
};

struct DemoScan {
  std::string name;
  double width = 0, defocus = 0;
  std::string version;  // that answered most of it
  // Mean distance of phases in the middles of the windows from the true ones (rad): of what was answered, and
  // of what the first version would have; of every frame, without one constant of the whole scan.
  std::vector<double> errors, without;
  StitchedPicture picture, picture_without;
  std::vector<float> truth;  // where `picture` is
  double correlation = 0, correlation_without = 0;
  double served_seconds = 0, learnt_seconds = 0;
};

struct DemoReport {
  std::string first_version;
  double training_seconds = 0, seconds = 0;
  std::vector<DemoScan> scans;
  std::vector<nlohmann::json> events;  // of the learner
  ServeReport served;
};

// `told`: in words, what goes on. Throws Error, (interrupted) too.
DemoReport run_demo(const DemoSettings& settings, const std::function<void(const std::string&)>& told);

// FOLDER/report.html.
void write_demo_page(const std::filesystem::path& path, const DemoReport& report);

}  // namespace superstep::edge
