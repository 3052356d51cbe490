// How fast samples come out of files, beside what this machine can do at most with their bytes, and beside
// what others read them with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "superstep/file/source/sample_source.h"

namespace superstep::lab {

struct DataBenchSettings {
  std::string path;  // as --data takes it
  int threads = 1;
  std::int64_t batch = 64;  // samples read at a time
  double seconds = 3;       // of each contender, about
  std::vector<std::string> against;
  std::string python = "python3";
};

// One after the other they take turns; of each the rates of all rounds.
struct DataRates {
  std::string what;
  std::vector<double> samples = {};  // per second; empty of one that has no samples
  std::vector<double> bytes = {};    // per second
  std::string why_not = {};          // it was not measured
};

struct DataBench {
  std::int64_t samples = 0, measured = 0;  // of the source, and of a round
  double sample_bytes = 0, file_bytes = 0;
  DataRates in_order{"in order"}, shuffled{"shuffled"}, pread{"pread"}, copy{"memcpy"}, jpeg{"libjpeg"};
  std::vector<DataRates> peers;
};

// What may stand in `against`: "dataloader" (PyTorch's), "webdataset".
const std::vector<std::string>& data_peers();

// Floors: the bytes of the files by pread() in pieces of a megabyte; the bytes of the samples from memory to
// memory; of folders of JPEGs the decoding of pictures that are in memory, by libjpeg alone. All on as many
// threads. Files are in the page cache where they fit there: every round goes over the same ones. Throws what
// reading throws.
DataBench bench_data(const data::SampleSource& source, const DataBenchSettings& settings);

}  // namespace superstep::lab
