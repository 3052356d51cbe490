// Answers to the frames of a series, in files: whole ones only, none over another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/model/blueprint.h"

namespace superstep::edge {

class SeriesResults {
 public:
  // Files FOLDER/SERIES-0001.h5 and so on, one whenever there are `part_bytes` of answers.
  SeriesResults(std::filesystem::path folder, std::string series, std::size_t part_bytes);

  // The answer to a frame: its outputs' rows, and the version's number.
  void add(std::uint64_t frame, std::uint64_t version, const std::vector<ServedPort>& ports,
           const std::vector<Tensor>& outputs, std::int64_t rows);
  // Writes what is not yet written, by frames' numbers. Throws Error (io); what could not be written is kept.
  void flush();
  bool wants_flush() const { return bytes_ >= part_bytes_; }
  const std::vector<std::string>& files() const { return files_; }

 private:
  std::filesystem::path next_file();

  struct Row {
    std::uint64_t frame, version;
    std::size_t at;  // in `bytes` of every output, in rows
  };
  std::filesystem::path folder_;
  std::string series_;
  std::size_t part_bytes_, bytes_ = 0;
  std::vector<ServedPort> ports_;
  std::vector<Row> rows_;
  std::vector<std::string> values_;  // of every output
  std::vector<std::string> files_;
  int number_ = 0;
};

}  // namespace superstep::edge
