// What a request for computing time asks of a training: how it scales, unit hours, memory, input and output,
// energy, and how sure each figure is. Every figure says where it is from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/study/quality/report.h"
#include "superstep/study/report.h"

namespace superstep::study {

struct AllocationSettings {
  int trainings = 1;   // that are asked for, with those that do not succeed
  double samples = 0;  // that a training sees; 0: its recipe's epochs of its data
  int threads = 1;
};

// Of one number of units that share an update.
struct ScalingPoint {
  int units = 1;
  std::int64_t batch = 0;  // of the update
  Figure step;             // s, with its data, 80 %; without a value: see its words
  double samples = 0;      // of it, as the machine's users count them: of packs what is in them
  double throughput = 0;   // samples/s
  double efficiency = 0;   // throughput over that of one unit times the units; 0: one unit has none
  double memory = 0;       // bytes of the fullest unit
  double memory_limit = 0;
};

// A model that is trained on a machine.
struct AllocationSubject {
  std::string workload, machine, precision;
  std::int64_t batch = 0;
  std::vector<ScalingPoint> strong, weak;    // the batch is shared; as many samples a unit
  double samples = 0;                        // that a training sees
  std::string samples_from;                  // in words
  double samples_low = 0, samples_high = 0;  // of several seeds; 0: no interval
  double sample_bytes = 0;                   // of inputs and targets, as they are fed
  double checkpoint_bytes = 0;               // parameters and the optimizer's state
  double unit_power = 0;                     // W, of the data sheet; 0: not known
  std::vector<std::string> doubts;           // what the predictions lie beyond, and warnings
};

struct Allocation {
  std::string title;
  AllocationSettings settings;
  std::vector<AllocationSubject> subjects;
  std::vector<std::vector<std::string>> measured;  // ranks, batch, throughput, efficiency: on this computer
  std::vector<std::string> commands, missing;      // missing: what could not be predicted, in words
  std::vector<std::vector<std::string>> versions;  // name, text
};

// Of the models that the study trains on machines, on 1, 2, 4 ... units up to those of its cells. Throws
// Error (invalid_argument) where it trains none.
Allocation allocation_of(const Report& report, const AllocationSettings& settings);
// Of the best batch of each machine and precision, until the target.
Allocation allocation_of(const QualityReport& report, const AllocationSettings& settings);

// allocation.html, allocation.pdf and allocation.json in the folder.
void write_allocation(const Allocation& allocation, const std::filesystem::path& folder);

std::string text_of(const Allocation& allocation);
nlohmann::json json_of(const Allocation& allocation);

}  // namespace superstep::study
