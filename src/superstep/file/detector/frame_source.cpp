#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/detector/detector_forms.h"
#include "superstep/file/detector/frame.h"
#include "superstep/file/pictures/names.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!pictures::is_folder(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (!entry.path().filename().string().starts_with('.')) files.push_back(entry.path());
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) {
    return pictures::comes_before(a.filename().string(), b.filename().string());
  });
  return files;
}

// Files are opened when they are read: a folder has more of them than a process may have open.
class FrameSource : public SampleSource {
 public:
  FrameSource(const fs::path& path, const SourceRequest& request) : files_(files_of(path)) {
    index();
    if (places_.empty()) throw Error(ErrorCode::bad_file, "holds no frame", path.string());
    const Frame& first = places_.front().frame;
    SourceArray frames{.name = "frames", .type = first.type, .row = Shape{first.height, first.width}};
    for (const SourceArray& wanted : request.wanted)
      if (wanted.row.rank() > 1 && wanted.row.element_count() == frames.row.element_count()) {
        frames.name = wanted.name;
        frames.row = wanted.row;
        break;
      }
    frames.rows = static_cast<std::int64_t>(places_.size());
    arrays_.push_back(std::move(frames));
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  std::string place(std::size_t, std::int64_t row) const override {
    const Place& at =
        places_[std::min(static_cast<std::size_t>(std::max<std::int64_t>(0, row)), places_.size() - 1)];
    return at.number == 0 ? files_[at.file].string()
                          : fmt::format("{}: frame {}", files_[at.file].string(), at.number + 1);
  }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    for (const RowsTo& to : wanted)
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const Place& at = places_[static_cast<std::size_t>(rows[i])];
        const StableFile file(files_[at.file]);
        if (file.size() != at.file_bytes)
          throw Error(ErrorCode::io, "was changed since it was opened", file.path().string(),
                      "read it again");
        const std::size_t bytes = arrays_[to.array].row_bytes();
        read_frame(file, at.frame, {to.to + i * bytes, bytes});
      }
  }

 private:
  struct Place {
    std::size_t file = 0;
    std::int64_t number = 0;  // in its file
    std::uint64_t file_bytes = 0;
    Frame frame;
  };

  void index() {
    Progress progress = Progress::passing("looking for frames", static_cast<double>(files_.size()), "files");
    InterruptCheck stop;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const StableFile file(files_[i]);
      std::int64_t number = 0;
      for (const Frame& frame : frames_of(file)) {
        places_.push_back({i, number++, file.size(), frame});
        require_like_first(frame);
      }
      progress.update(static_cast<double>(i));
      stop.throw_if_due(files_[i].string());
    }
  }

  void require_like_first(const Frame& frame) const {
    const Frame& first = places_.front().frame;
    if (frame.type == first.type && frame.height == first.height && frame.width == first.width) return;
    throw Error(ErrorCode::bad_file,
                fmt::format("has a frame of {} x {} {}, the first is {} x {} {}", frame.width, frame.height,
                            name_of(frame.type), first.width, first.height, name_of(first.type)),
                place(0, static_cast<std::int64_t>(places_.size()) - 1),
                "frames that are read together are alike");
  }

  std::vector<fs::path> files_;
  std::vector<Place> places_;
  std::vector<SourceArray> arrays_;
};

}  // namespace

bool holds_frames(const fs::path& path) {
  if (!pictures::is_folder(path)) return is_frame_file(path);
  // At a glance: the first file, and no folder beside it.
  std::error_code none;
  bool any = false;
  for (const auto& entry : fs::directory_iterator(path, none)) {
    if (entry.path().filename().string().starts_with('.')) continue;
    if (!entry.is_regular_file(none) || (!any && !is_frame_file(entry.path()))) return false;
    any = true;
  }
  return any;
}

std::unique_ptr<SampleSource> open_frames(const fs::path& path, const SourceRequest& request) {
  return std::make_unique<FrameSource>(path, request);
}

}  // namespace superstep::data
