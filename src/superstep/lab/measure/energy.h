// Energy as the host's own counters tell it (RAPL, through the kernel's powercap files). Where there are
// none, or they may not be read, there is no energy, and the reason is given; nothing is estimated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "superstep/lab/measure/clock.h"

namespace superstep::lab {

class EnergyMeter {
 public:
  explicit EnergyMeter(const std::filesystem::path& root = "/sys/class/powercap");

  bool available() const { return !zones_.empty(); }
  const std::string& reason() const { return reason_; }  // why there is none
  std::string source() const;                            // "RAPL: package-0, package-1"

  // Reads the counters; call at least once a minute: they overflow after some minutes of full load.
  void sample();
  double joules() const { return joules_; }  // of all packages, since the first sample

 private:
  struct Zone {
    std::filesystem::path counter;
    std::string name;
    std::uint64_t range;  // uJ, where the counter starts again
    std::uint64_t last = 0;
  };
  std::vector<Zone> zones_;
  std::string reason_;
  double joules_ = 0;
  bool started_ = false;
};

// Energy of a region of repeated calls: of everything that the packages do meanwhile, idle included.
struct EnergyReport {
  double joules = 0, seconds = 0, power_max = 0;  // J, s, W (of half-second pieces)
  std::int64_t calls = 0;
};

// Calls for at least `seconds`; a region below ten seconds says little. The meter must be available.
EnergyReport measure_energy(const std::function<void()>& call, EnergyMeter& meter, double seconds = 10,
                            Clock& clock = steady_clock());

}  // namespace superstep::lab
