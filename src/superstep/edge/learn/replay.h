// Labelled scans that were learnt from before: within a bound of bytes, in memory and in files.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "superstep/edge/learn/lesson.h"

namespace superstep::edge {

class Replay {
 public:
  Replay(std::filesystem::path folder, std::size_t most_bytes, std::uint64_t seed)
      : folder_(std::move(folder)), most_bytes_(most_bytes), seed_(seed) {}

  // Scans of `lesson`, of a server before this one, are read. Of files that are none the rest is kept.
  void read(const Lesson& lesson);
  // FOLDER/NAME.h5. Where there is no room any earlier one goes, drawn by `cycle`.
  void add(const std::shared_ptr<LearnScan>& scan, const Lesson& lesson, std::uint64_t cycle);

  std::size_t size() const { return scans_.size(); }
  std::vector<LearnSample> held_out() const;
  // The scan's own that are trained on and as many of others, drawn evenly by scan, in an order that is
  // drawn. `also` may be null.
  std::vector<LearnSample> training_samples(const LearnScan& scan, const LearnScan* also,
                                            std::uint64_t cycle) const;

 private:
  void make_room(std::uint64_t cycle);

  const std::filesystem::path folder_;
  const std::size_t most_bytes_;
  const std::uint64_t seed_;
  std::vector<std::shared_ptr<LearnScan>> scans_;
};

}  // namespace superstep::edge
