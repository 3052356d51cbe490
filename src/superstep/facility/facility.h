// A facility: sites, the links between them, and the partitions of machines that stand there, as
// facility.toml describes them (docs/facility.md).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/facility/quantities.h"

namespace superstep::facility {

// What breaks now and then: exponential times between, then so long until it works again.
struct Failures {
  double every = 0, lasts = 0;  // s; every 0: it never breaks
  bool none() const { return every == 0; }
};

// Seconds that a job waits before it starts: lognormal, by its median and 90th percentile, or drawn from the
// waits of a trace.
struct Wait {
  double median = 0, p90 = 0;
  std::vector<double> trace;  // s, ascending; empty: the lognormal counts
  std::string source;         // the trace's file, or the file's own word

  bool none() const { return median == 0 && trace.empty(); }
  double usual() const;  // the median
  double draw(RandomStream& random) const;
};

struct Site {
  std::string name;
  Amount network;  // bytes/s between what stands there, shared by all; 0: no limit
};

// Carries its rate each way; what is under way at the same time shares it evenly.
struct Link {
  std::string name, source;
  int from = 0, to = 0;  // sites
  Amount rate;           // bytes/s
  double latency = 0;    // s
  double others = 0;     // share of the rate that others use
  Failures fails;
};

// Devices of one kind at one site.
struct Partition {
  std::string name, source;
  int site = 0;
  std::string machine, stack;  // machine: an id, a file, or "cpu": this computer; empty: times are stated
  int devices = 1;
  double price = 0;    // of a device-hour
  double power = 0;    // W of a device at work; 0: the machine's data sheet
  std::string queue;   // its name; empty: devices are there at once
  Wait wait;           // of that queue
  double longest = 0;  // s that a job may run; 0: no limit
  Amount start;        // s from a job's start to its first step: programs, compilation, weights
  Failures fails;      // of a device
  // How its tasks' commands run in `superstep run`: on this computer, in their own time; by Slurm; or here,
  // but for no less than the time that they would take there.
  enum class Runs { here, slurm, emulated } runs = Runs::emulated;
  std::vector<std::string> sbatch;  // options of its jobs
};

struct Facility {
  std::string name, summary, file;
  std::string currency;  // of prices; empty: none is given
  std::vector<Site> sites;
  std::vector<Link> links;
  std::vector<Partition> partitions;
  int most_devices = 0;  // of all partitions

  // Links from one site to another, fewest first, then lowest latency; none: there is no way. Of one and the
  // same site empty.
  struct Step {
    int link;
    bool forward;  // from its first site to its second
  };
  const std::vector<Step>* route(int from, int to) const;

  std::vector<std::vector<std::vector<Step>>> routes;  // by site and site
  std::vector<std::vector<bool>> reached;
};

// `where` is the text's file: traces of queues lie beside it. Throws Error: invalid_argument with file, line
// and key; not_found, bad_file for a trace.
Facility parse_facility(std::string_view text, const std::string& where);
Facility read_facility(const std::filesystem::path& file);

// Waits of the jobs of a trace in the Standard Workload Format (Chapin et al. 1999): its third column,
// seconds; jobs of which it is not known (-1) are left out. Ascending. Throws Error (bad_file) naming the
// line.
std::vector<double> waits_of_trace(std::string_view text, const std::string& where);

}  // namespace superstep::facility
