// How busy the machine was with other work while something was measured.
#pragma once

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace superstep::record {

// Processor time since boot, over all processors, in s.
struct ProcessorTime {
  double total = 0, idle = 0, stolen = 0;  // stolen: by the host of a virtual machine
};
// From the text of /proc/stat; nothing when it is of another form.
std::optional<ProcessorTime> parse_processor_time(const std::string& stat, double ticks_a_second);

// The load averages over 1, 5 and 15 minutes; null where the system does not tell.
nlohmann::json load_average();

class HostLoad {
 public:
  // Begins now. `stat` is read now and at each question; tests have their own.
  explicit HostLoad(std::filesystem::path stat = "/proc/stat");

  // The shares of all processors' time that went to other processes and that a hypervisor took, since the
  // beginning; both null where the system does not tell.
  //   {"load_average_before": [..], "load_average_after": [..], "others_share", "stolen_share", "busy"}
  nlohmann::json record() const;

  // One line for a reader when the machine was busy: "the machine was busy: 61 % of its processors' time went
  // to other work"; empty when it was not or nobody knows.
  std::string warning() const;

  static constexpr double busy_share = 0.05;  // from here on a figure says so

 private:
  struct Moment {
    std::optional<ProcessorTime> all;
    double own = 0;  // s, of this process and of its children that ended
    nlohmann::json load_average;
  };
  Moment now() const;
  std::optional<std::array<double, 2>> shares() const;  // others, stolen

  std::filesystem::path stat_;
  Moment begin_;
};

}  // namespace superstep::record
