// Where in its patch the center of a spot is: by a trained network, by a fit, or by the center of mass.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"

namespace superstep::peaks {

struct PatchPlace {
  double column = 0, row = 0;  // px from the first pixel's center
  bool located = true;         // false: it is the centroid, since the method gave no place within the patch
};

class Locator {
 public:
  virtual ~Locator() = default;
  virtual int patch() const = 0;  // px of the patches it takes
  // Patches one behind the other. A patch's place depends on the patch alone. Throws Error (interrupted).
  virtual std::vector<PatchPlace> locate(std::span<const float> patches, ThreadPool& pool) = 0;
  // How many patches it takes best at a time.
  virtual std::int64_t batch() const = 0;
};

enum class Method { braggnn, fit, centroid };
std::span<const std::string> method_names();  // in that order

struct LocatorSettings {
  Method method = Method::centroid;
  std::filesystem::path run;  // of a training of braggnn
  int patch = 0;              // px; 0: 11, or the network's
  int threads = 1;
};

// Throws Error: what run::load_weights() throws; invalid_argument where the run is of another workload, where
// --patch is not what its network takes, or where a run is given to a method that has none.
std::unique_ptr<Locator> open_locator(const LocatorSettings& settings);

}  // namespace superstep::peaks
