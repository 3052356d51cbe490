// Answers to the frames of a series, in files: whole ones only, none over another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/model/blueprint.h"
#include "superstep/file/npz.h"

namespace superstep::edge {

class SeriesResults {
 public:
  // Told of a file before it is written, and when it is there: its name, its number, the frames in it. What
  // the first throws, flush() throws, and the file is not written.
  using Told =
      std::function<void(const std::string& file, int number, const std::vector<std::uint64_t>& frames)>;
  struct Settings {
    std::filesystem::path folder;
    std::string series;
    std::size_t part_bytes = std::size_t{64} << 20;
    int first_number = 1;
    std::vector<std::string> files{};  // that are there already
    Told before{}, after{};
  };
  // Files FOLDER/SERIES-0001.h5 and so on, one whenever there are `part_bytes` of answers.
  explicit SeriesResults(Settings settings);

  // The answer to a frame: its outputs' rows, and the version's number.
  void add(std::uint64_t frame, std::uint64_t version, const std::vector<ServedPort>& ports,
           const std::vector<Tensor>& outputs, std::int64_t rows);
  // Writes what is not yet written, by frames' numbers. Throws Error (io); what could not be written is kept.
  void flush();
  bool wants_flush() const { return bytes_ >= settings_.part_bytes; }
  std::size_t bytes() const { return bytes_; }  // not yet written
  const std::vector<std::string>& files() const { return files_; }

 private:
  std::filesystem::path next_file();

  struct Row {
    std::uint64_t frame, version;
    std::size_t at;  // in `bytes` of every output, in rows
  };
  data::NamedTensors sorted(std::vector<std::uint64_t>& frames) const;

  const Settings settings_;
  std::size_t bytes_ = 0;
  std::vector<ServedPort> ports_;
  std::vector<Row> rows_;
  std::vector<std::string> values_;  // of every output
  std::vector<std::string> files_;
  int number_;
};

}  // namespace superstep::edge
