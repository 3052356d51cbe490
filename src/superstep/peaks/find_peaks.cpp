#include "superstep/peaks/find_peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/thread_pool.h"
#include "superstep/peaks/image/frame_stack.h"
#include "superstep/peaks/spot/link.h"

namespace superstep::peaks {
namespace {

constexpr std::int64_t frames_a_block = 64;  // chosen: a frame for every thread of most machines

// A block of frames is looked at by all threads; what each of them needs is kept from block to block.
class Finders {
 public:
  Finders(const FrameStack& stack, const Correction& correction, const FindSettings& settings,
          ThreadPool& pool)
      : stack_(stack),
        correction_(correction),
        settings_(settings),
        pool_(pool),
        workers_(static_cast<std::size_t>(pool.threads())),
        progress_("finding peaks", static_cast<double>(stack.frames()), "frames") {}

  std::vector<FrameSpots> find(std::int64_t first, std::int64_t count) {
    std::vector<FrameSpots> found(static_cast<std::size_t>(count));
    pool_.parallel_for(count, [&](std::int64_t item, int worker) {
      if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
      found[static_cast<std::size_t>(item)] =
          find_one(first + item, workers_[static_cast<std::size_t>(worker)]);
      progress_.update(static_cast<double>(++done_));
    });
    return found;
  }

 private:
  struct Worker {
    std::unique_ptr<SpotFinder> finder;
    std::vector<std::byte> pixels;
  };

  FrameSpots find_one(std::int64_t number, Worker& worker) {
    if (!worker.finder) {
      worker.finder = std::make_unique<SpotFinder>(settings_);
      worker.pixels.resize(stack_.frame_bytes());
    }
    stack_.read(number, worker.pixels.data());
    try {
      return worker.finder->find(Frame(stack_.type(), worker.pixels.data(), correction_), number);
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), fmt::format("{}, frame {}", stack_.where(), number),
                  error.hint());
    }
  }

  const FrameStack& stack_;
  const Correction& correction_;
  const FindSettings settings_;
  ThreadPool& pool_;
  std::vector<Worker> workers_;
  std::atomic<std::int64_t> done_ = 0;
  Progress progress_;
};

// Patches that wait until there are enough of them for the method, and the spots that they are of.
class Waiting {
 public:
  Waiting(Locator& locator, ThreadPool& pool, PeakTable& table)
      : locator_(locator), pool_(pool), table_(table) {}

  void add(const FrameSpots& found) {
    table_.spots.insert(table_.spots.end(), found.spots.begin(), found.spots.end());
    patches_.insert(patches_.end(), found.patches.begin(), found.patches.end());
  }
  // All whole batches, or, at the end, what there is.
  void locate(bool all) {
    const auto area = static_cast<std::size_t>(locator_.patch()) * static_cast<std::size_t>(locator_.patch());
    const auto batch = static_cast<std::size_t>(locator_.batch());
    const std::size_t waiting = patches_.size() / area, now = all ? waiting : waiting / batch * batch;
    if (now == 0) return;
    const Stopwatch watch;
    const auto places = locator_.locate(std::span(patches_).first(now * area), pool_);
    for (const PatchPlace& place : places) put(table_.spots[located_++], place);
    patches_.erase(patches_.begin(), patches_.begin() + static_cast<std::ptrdiff_t>(now * area));
    table_.locate_seconds += watch.seconds();
  }

 private:
  void put(FoundSpot& spot, const PatchPlace& place) const {
    spot.found_row = patch_begin(spot.row, locator_.patch()) + place.row;
    spot.found_column = patch_begin(spot.column, locator_.patch()) + place.column;
    if (!place.located) spot.flags |= not_located;
  }

  Locator& locator_;
  ThreadPool& pool_;
  PeakTable& table_;
  std::vector<float> patches_;
  std::size_t located_ = 0;
};

void flag_ends(PeakTable& table) {
  for (FoundSpot& spot : table.spots)
    if (spot.frame == 0 || spot.frame == table.frames - 1) spot.flags |= cut_by_scan;
}

}  // namespace

PeakTable find_peaks(const PeaksSettings& settings) {
  const FrameStack stack(settings.frames);
  const Correction correction = read_correction(settings.correction, stack.height(), stack.width());
  LocatorSettings method = settings.locator;
  method.threads = settings.threads;
  const std::unique_ptr<Locator> locator = open_locator(method);
  FindSettings find = settings.find;
  find.patch = locator->patch();
  PeakTable table{.frames = stack.frames(),
                  .height = stack.height(),
                  .width = stack.width(),
                  .patch = find.patch,
                  .notes = stack.notes()};
  ThreadPool pool(settings.threads);
  SpotLinker linker(find.part);
  Waiting waiting(*locator, pool, table);
  const Stopwatch watch;
  {
    Finders finders(stack, correction, find, pool);
    for (std::int64_t first = 0; first < table.frames; first += frames_a_block) {
      for (const FrameSpots& found : finders.find(first, std::min(frames_a_block, table.frames - first))) {
        if (settings.merge) linker.add(found);
        waiting.add(found);
        table.mean_threshold += found.threshold / static_cast<double>(table.frames);
        table.mean_background += found.level.background / static_cast<double>(table.frames);
      }
      waiting.locate(first + frames_a_block >= table.frames);
    }
  }
  table.seconds = watch.seconds();
  std::vector<std::int64_t> group(table.spots.size());
  std::iota(group.begin(), group.end(), 0);
  if (settings.merge) {
    if (table.frames > 1) flag_ends(table);
    group = linker.reflections();
  }
  table.merged = merged(table.spots, group, settings.merge && find.part ? find.valley : 0);
  return table;
}

}  // namespace superstep::peaks
