#include "superstep/edge/learn/replay.h"

#include <algorithm>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/random.h"

namespace superstep::edge {
namespace {

namespace fs = std::filesystem;

void shuffle(std::vector<LearnSample>& samples, RandomStream& random) {
  for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random.below(i)]);
}

}  // namespace

void Replay::read(const Lesson& lesson) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().extension() == ".h5") files.insert(entry.path());
  for (const fs::path& file : files) try {
      scans_.push_back(std::make_shared<LearnScan>(lesson.read_labelled(file, INT64_MAX)));
      make_room(0);
    } catch (const Error&) {  // of another workload, or cut short by the disk
    }
}

void Replay::add(const std::shared_ptr<LearnScan>& scan, const Lesson& lesson, std::uint64_t cycle) {
  lesson.write_labelled(folder_ / (scan->name + ".h5"), *scan);
  std::erase_if(scans_, [&](const auto& one) { return one->name == scan->name; });
  scans_.push_back(scan);
  make_room(cycle);
}

// Any but the newest: who stays is drawn.
void Replay::make_room(std::uint64_t cycle) {
  std::size_t bytes = 0;
  for (const auto& one : scans_) bytes += one->bytes();
  RandomStream random(seed_, cycle, 1);
  while (bytes > most_bytes_ && scans_.size() > 1) {
    const auto gone = scans_.begin() + static_cast<std::ptrdiff_t>(random.below(scans_.size() - 1));
    bytes -= (*gone)->bytes();
    fs::remove(folder_ / ((*gone)->name + ".h5"));
    scans_.erase(gone);
  }
}

std::vector<LearnSample> Replay::held_out() const {
  std::vector<LearnSample> samples;
  for (const auto& one : scans_)
    for (const LearnSample& sample : samples_of(*one, true)) samples.push_back(sample);
  return samples;
}

std::vector<LearnSample> Replay::training_samples(const LearnScan& scan, const LearnScan* also,
                                                  std::uint64_t cycle) const {
  std::vector<LearnSample> samples = samples_of(scan, false);
  RandomStream random(seed_, cycle);
  std::vector<std::vector<LearnSample>> others;
  for (const auto& one : scans_) others.push_back(samples_of(*one, false));
  if (also) others.push_back(samples_of(*also, false));
  const std::size_t share = others.empty() ? 0 : samples.size() / others.size();
  for (std::vector<LearnSample>& other : others) {
    shuffle(other, random);
    samples.insert(samples.end(), other.begin(),
                   other.begin() + static_cast<std::ptrdiff_t>(std::min(share, other.size())));
  }
  shuffle(samples, random);
  return samples;
}

}  // namespace superstep::edge
