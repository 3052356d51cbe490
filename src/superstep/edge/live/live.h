// The pictures that grow while series run, for whoever looks and for the disk.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "superstep/base/tensor.h"
#include "superstep/edge/live/canvas.h"
#include "superstep/edge/live/picture_files.h"
#include "superstep/edge/model/version.h"

namespace superstep::edge {

class Live {
 public:
  struct Settings {
    StitchSettings stitch;
    std::filesystem::path folder;     // of SERIES.cxi and SERIES.tiff; empty: nothing is written
    std::filesystem::path positions;  // CSV: frame, y, x in m, for frames that bring none; empty: none
    std::chrono::seconds between_files{30};
    std::string model;
  };
  // Throws Error (unsupported) where the model gives no windows of f32, and what reading positions throws.
  Live(Settings settings, const ServedPorts& ports);
  ~Live();
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  using Position = std::optional<std::pair<double, double>>;
  void add(const std::string& series, std::uint64_t frame, const Position& position,
           const std::vector<Tensor>& outputs, const Version& version);
  void close(const std::string& series);  // its files are written

  enum class Shown { mean, spread, coverage };
  struct Change {
    std::string version;
    std::uint64_t first_frame = 0;
    std::string series;
  };
  struct State {
    std::string series, version;
    std::uint64_t added = 0, unplaced = 0,
                  beyond = 0;  // windows of the series; without a place; beyond the canvas
    double frames_per_second = 0;
    double pixel = 0;          // m, of the picture
    std::string output, unit;  // of the model, that is stitched; unit "": it has none that is known
    struct Range {
      float low = 0, high = 0;
      int height = 0, width = 0;
    };
    std::map<Shown, Range> drawn;  // what the colors of the last PNG of each kind mean
    std::vector<Change> versions;  // that answered, the latest last
    std::string failure;           // why files cannot be written; empty: they can
  };
  State state() const;
  // PNG of the series that was added to last; made anew ten times a second at most. Empty: there is none.
  std::string png(Shown what);
  // The picture of a series that is open, or the last that was closed.
  std::optional<StitchedPicture> picture(const std::string& series) const;
  void finish();  // closes all

 private:
  struct Growing {
    StitchCanvas canvas;
    PictureFacts facts;
    std::uint64_t unplaced = 0, beyond = 0;
    std::size_t written = 0;  // windows that the files have
    bool closed = false;
  };
  void read_positions();
  void write_now_and_then();
  void write(Growing& growing, std::unique_lock<std::mutex>& lock);
  Growing& of(const std::string& series, const std::string& version);

  const Settings settings_;
  std::size_t port_ = 0;
  std::string output_;     // its name
  std::int64_t side_ = 0;  // px of a window
  std::map<std::uint64_t, std::pair<double, double>> positions_;
  mutable std::mutex mutex_;
  std::map<std::string, Growing> series_;
  std::string shown_, failure_;
  std::vector<Change> versions_;
  std::chrono::steady_clock::time_point rate_since_ = std::chrono::steady_clock::now();
  std::uint64_t rate_count_ = 0;
  double rate_ = 0;
  struct Drawn {
    std::string png, series;
    State::Range range;
    std::uint64_t added = 0;
    std::chrono::steady_clock::time_point when;
  };
  std::map<Shown, Drawn> drawn_;
  std::condition_variable ending_;
  bool over_ = false;
  std::thread writer_;
};

}  // namespace superstep::edge
