#include "superstep/baseline/xray/sobel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/baseline/xray/frame_file.h"
#include "superstep/baseline/xray/sobel.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

// The windows of a list like "3,5,7".
std::vector<int> parse_windows(const std::string& list) {
  std::vector<int> windows;
  for (const std::string& text : split(list, ',')) {
    int window = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), window);
    if (code != std::errc() || end != text.data() + text.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a list of windows such as 3,5,7", list), "option sweep");
    smoothing_taps(window);  // refuses what cannot be had
    windows.push_back(window);
  }
  return windows;
}

struct Filtered {
  Gradients gradients;
  std::vector<float> magnitude;
};

// Frames [first, first + count) of one window.
std::vector<Filtered> filter_block(const Tensor& frames, int window, ThreadPool& pool) {
  const auto pixels = static_cast<std::size_t>(frames.shape()[1] * frames.shape()[2]);
  std::vector<Filtered> results(static_cast<std::size_t>(frames.shape()[0]));
  pool.parallel_for(frames.shape()[0], [&](std::int64_t item, int) {
    const auto at = static_cast<std::size_t>(item);
    const SobelFrame frame{static_cast<int>(frames.shape()[1]), static_cast<int>(frames.shape()[2]),
                           frames.as<std::uint16_t>().subspan(at * pixels, pixels)};
    results[at].gradients = sobel(frame, window);
    results[at].magnitude = gradient_magnitude(results[at].gradients);
  });
  return results;
}

class Output {
 public:
  Output(const std::filesystem::path& path, const FrameFile& file) {
    if (path.empty()) return;
    writer_ = std::make_unique<data::Hdf5Writer>(path);
    const Shape shape{file.frames(), file.height(), file.width()};
    writer_->create("gx", ElementType::i32, shape);
    writer_->create("gy", ElementType::i32, shape);
    writer_->create("mag", ElementType::f32, shape);
  }
  void add(std::int64_t first, const std::vector<Filtered>& results) {
    if (!writer_) return;
    for (const Filtered& result : results) {
      writer_->write_rows("gx", first, 1, std::as_bytes(std::span(result.gradients.gx)));
      writer_->write_rows("gy", first, 1, std::as_bytes(std::span(result.gradients.gy)));
      writer_->write_rows("mag", first, 1, std::as_bytes(std::span(result.magnitude)));
      ++first;
    }
  }
  void close() {
    if (writer_) writer_->close();
  }

 private:
  std::unique_ptr<data::Hdf5Writer> writer_;
};

// The best of several runs over a block of frames held in memory, in seconds a frame.
double measure_window(const Tensor& frames, int window, ThreadPool& pool) {
  double best = 1e300;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Stopwatch watch;
    filter_block(frames, window, pool);
    best = std::min(best, watch.seconds());
  }
  return best / static_cast<double>(frames.shape()[0]);
}

page::Picture picture_of(const std::vector<float>& values, int width, int height, const char* caption,
                         bool is_signed) {
  float largest = 1;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  const float limit = 0.25f * largest;  // tracks at an angle are much fainter than the brightest pixel
  const page::Colormap map = is_signed ? page::Colormap::difference : page::Colormap::viridis;
  const std::string end = fmt::format("{:.3g}", limit);
  return {page::colored(values, width, height, map, is_signed ? -limit : 0.0f, limit),
          caption,
          {},
          1,
          page::ColorBar{map, is_signed ? "\u2212" + end : "0", end, caption}};
}

void write_page(const std::filesystem::path& path, const Tensor& frame, const Filtered& filtered,
                int window) {
  const int height = static_cast<int>(frame.shape()[1]), width = static_cast<int>(frame.shape()[2]);
  const auto pixels =
      frame.as<std::uint16_t>().first(static_cast<std::size_t>(height) * static_cast<std::size_t>(width));
  page::Page page("Sobel filter");
  page.paragraph(fmt::format("First frame, window {} x {}. Colors end at a quarter of the largest value.",
                             window, window));
  page.pictures(
      {picture_of({pixels.begin(), pixels.end()}, width, height, "frame", false),
       picture_of({filtered.gradients.gx.begin(), filtered.gradients.gx.end()}, width, height, "Gx", true),
       picture_of({filtered.gradients.gy.begin(), filtered.gradients.gy.end()}, width, height, "Gy", true),
       picture_of(filtered.magnitude, width, height, "magnitude", false)});
  page.write(path);
}

}  // namespace

Report run_sobel(const Request& request, const Options& options) {
  const std::vector<int> windows = parse_windows(options.text("sweep"));
  const int chosen = static_cast<int>(options.integer("window", 3, 9));
  smoothing_taps(chosen);
  const FrameFile file(request.input);
  Output output(request.output, file);
  Progress progress("Sobel filter", static_cast<double>(file.frames()), "frames");
  const std::int64_t at_once = 2 * request.pool->threads();
  const Stopwatch watch;
  for (std::int64_t first = 0; first < file.frames(); first += at_once) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
    const std::int64_t count = std::min(at_once, file.frames() - first);
    const Tensor frames = file.read(ElementType::u16, first, count);
    const std::vector<Filtered> results = filter_block(frames, chosen, *request.pool);
    output.add(first, results);
    if (first == 0 && !request.picture.empty()) write_page(request.picture, frames, results[0], chosen);
    progress.update(static_cast<double>(first + count));
  }
  output.close();
  progress.finish();
  const double elapsed = watch.seconds();
  Report report;
  report.metrics = {{"throughput", static_cast<double>(file.frames()) / elapsed, "samples/s"},
                    {"elapsed", elapsed, "s"}};
  TextTable table({"window", "time a frame", "pixels/s"});
  const Tensor frames = file.read(ElementType::u16, 0, std::min(at_once, file.frames()));
  for (const int window : windows) {
    const double seconds = measure_window(frames, window, *request.pool);
    table.add_row({fmt::format("{0} x {0}", window), format_seconds(seconds),
                   format_si(static_cast<double>(file.pixels()) / seconds, "px/s")});
    report.metrics.push_back({fmt::format("time_per_frame_{0}x{0}", window), seconds, "s"});
  }
  report.text = table.to_string();
  return report;
}

std::vector<OptionSpec> sobel_options() {
  return {{"window", "3", "of the gradients that are written: 3, 5, 7 or 9"},
          {"sweep", "3,5,7,9", "windows whose time is measured"}};
}

}  // namespace superstep::baseline
