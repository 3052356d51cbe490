// A detector that is not there: sends frames at a rate, with faults of known counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/stream/wire.h"
#include "superstep/edge/zeromq/curve.h"

namespace superstep::edge {

// Shares of frames, drawn by a frame's number from the seed.
struct Faults {
  double drop = 0;              // not sent
  double twice = 0;             // sent again
  double corrupt = 0;           // cut short
  std::uint64_t reorder = 0;    // frames are sent in another order within windows of so many
  double stall = 0, every = 0;  // seconds that nothing is sent, each so many seconds
};
// "drop=1e-3,dup=1e-4,corrupt=1e-5,reorder=8,stall=2@10". Throws Error (invalid_argument).
Faults faults_from_text(const std::string& text);

enum class Pace { constant, poisson, burst };

struct DetectorSettings {
  std::string to = "tcp://127.0.0.1:31001";            // bound
  std::vector<std::pair<double, double>> positions{};  // (y, x) in m, sent round and round like frames
  WireFormat format = WireFormat::stream2;
  std::string compression{};  // of pixels in stream2: "lz4" or "bslz4"; empty: none
  std::string series = "series";
  std::uint64_t frames = 0;
  double rate = 1000;  // frames per second; 0: as fast as they are taken
  Pace pace = Pace::constant;
  std::uint64_t burst = 64;  // frames of a burst; the rate stays the mean
  Faults faults;
  std::uint64_t seed = 1;
  int high_water = 1000;
  std::string answers{};     // where answers to its frames are published; empty: nobody listens to them
  CurvePointer curve{};      // keys, at both addresses; null: in the clear
  bool acknowledge = false;  // send again what no receiver has said to keep (acknowledged.h)
  double patience = 30;      // seconds to wait for a receiver, at the beginning and where it does not take
};

struct DetectorReport {
  std::uint64_t sent = 0;  // messages of frames, second ones too
  std::uint64_t dropped = 0, twice = 0, corrupt = 0, reordered = 0, held_back = 0;
  std::uint64_t sent_again = 0;  // for want of an acknowledgement
  double seconds = 0;
  double lateness_p99 = 0;  // s behind the due time when a frame was handed over
  // Of frames whose answer came: seconds from when the frame was due, whenever it was sent, ascending; and
  // how many that were sent whole have none.
  std::vector<double> latencies{};
  std::uint64_t unanswered = 0;
};

// `pixels`: frames along the first axis, which are sent round and round. Throws Error (io) where nobody takes
// frames, or publishes answers, for as long as the patience is, (interrupted), (invalid_argument) where
// answers are timed and frames are never due.
DetectorReport send_series(const Tensor& pixels, const DetectorSettings& settings);

}  // namespace superstep::edge
