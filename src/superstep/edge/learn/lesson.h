// What learning is of a workload: what its model has of a pattern, where labels come from, how far answers
// are from them, and the files of both.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "superstep/edge/learn/scan.h"
#include "superstep/edge/model/version.h"

namespace superstep::edge {

class Lesson {
 public:
  struct Settings {
    int threads = 1;         // of making labels
    int passes = 60;         // of a reconstruction
    std::int64_t crop = 12;  // px: the middle of a window, which is what counts of it
    double pixel = 10e-9;    // m
    int niceness = 10;       // of processes
    std::filesystem::path program = "/proc/self/exe";
  };
  // Where labels are made, and what holds that up.
  struct Place {
    std::filesystem::path work;  // a folder
    std::function<bool()> should_pause, should_end;
  };

  virtual ~Lesson() = default;
  virtual const char* unit() const = 0;  // of errors
  // Whether a pattern is of no use without its place in the scan.
  virtual bool needs_positions() const = 0;
  // From counts to what the model has, in place.
  virtual void prepare(std::span<float> pattern) const = 0;
  // Gives the scan its labels, by the conventional method in a process of its own; takes out what that could
  // not label. `present` is what is served. What is worth telling. Throws Error.
  virtual nlohmann::json label(LearnScan& scan, Version& present, const Place& place) = 0;
  // One value a sample, which has a label.
  virtual std::vector<double> errors(std::span<const float> answers,
                                     std::span<const LearnSample> samples) const = 0;

  // A file that the training reads: samples in this order, of which no two belong together.
  virtual void write_training(const std::filesystem::path& file,
                              std::span<const LearnSample> samples) const = 0;
  // A labelled scan, at most `most` rows of a file of the generator's form. Throw Error.
  virtual LearnScan read_labelled(const std::filesystem::path& file, std::int64_t most) const = 0;
  virtual void write_labelled(const std::filesystem::path& file, const LearnScan& scan) const = 0;
};

// Throws Error (unsupported) where nobody labels for the workload, or for these options of its model.
std::unique_ptr<Lesson> lesson_for(const std::string& workload, const std::vector<std::string>& options,
                                   const Lesson::Settings& settings);

// What the version answers to every pattern: its last output, a sample after the other.
std::vector<float> answers_to(Version& version, std::span<const LearnSample> samples, const Lesson& lesson);

}  // namespace superstep::edge
