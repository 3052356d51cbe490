#include "superstep/peaks/image/frame_stack.h"

#include <fmt/format.h>

#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/file/source/forms.h"
#include "superstep/peaks/image/correction.h"

namespace superstep::peaks {
namespace {

constexpr std::int64_t largest_side = 1 << 15;  // px: places in a frame are 32-bit numbers

bool is_stack(const data::SourceArray& array) {
  const int rank = array.row.rank();
  return !array.single && (rank == 2 || (rank == 3 && array.row[0] == 1));
}

// One frame alone: [H,W], along whose first axis a source numbers rows; or a single array.
bool is_frame(const data::SourceArray& array) {
  return array.single ? array.row.rank() == 2 : array.row.rank() == 1;
}

template <class Is>
std::vector<std::size_t> arrays_that(const data::SampleSource& source, Is is) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < source.arrays().size(); ++i)
    if (is(source.arrays()[i])) found.push_back(i);
  return found;
}

// One of several: by its name.
std::size_t choose(const data::SampleSource& source, const std::vector<std::size_t>& arrays,
                   const std::string& where) {
  if (arrays.size() == 1) return arrays[0];
  std::vector<std::string> names;
  for (const char* usual : {"frames", "data"})
    for (const std::size_t i : arrays) {
      const std::string& name = source.arrays()[i].name;
      if (name == usual || name.ends_with(std::string("/") + usual)) return i;
    }
  for (const std::size_t i : arrays) names.push_back(source.arrays()[i].name);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("which of these are the frames: {}?", join(names, ", ")), where,
              fmt::format("say it: frames={}:{}", where, names[0]));
}

}  // namespace

FrameStack::FrameStack(const std::filesystem::path& path)
    : source_(data::open_source(path, {.unnamed = "frames", .signal = "frames"})) {
  std::vector<std::size_t> found = arrays_that(*source_, is_stack);
  single_ = found.empty();
  if (single_) found = arrays_that(*source_, is_frame);
  if (found.empty())
    throw Error(ErrorCode::bad_file, "it has no array of frames, [N,H,W] or [H,W]", path.string());
  array_ = choose(*source_, found, path.string());
  const data::SourceArray& array = source_->arrays()[array_];
  const Shape whole = array.shape();
  where_ = source_->place(array_, 0);
  frames_ = single_ ? 1 : array.rows;
  if (frames_ == 0) throw Error(ErrorCode::bad_file, "it holds no frames", where_);
  const std::int64_t height = whole[whole.rank() - 2], width = whole[whole.rank() - 1];
  if (height < 1 || width < 1 || height > largest_side || width > largest_side)
    throw Error(ErrorCode::unsupported,
                fmt::format("frames of {} x {} pixels are not looked at", height, width), where_,
                fmt::format("a side may have 1 to {} pixels", largest_side));
  height_ = static_cast<int>(height);
  width_ = static_cast<int>(width);
  type_ = array.type == ElementType::boolean ? ElementType::u8 : array.type;  // a mask's bytes, 0 and 1
  require_pixels(type_, where_);
}

void FrameStack::read(std::int64_t frame, std::byte* to) const {
  std::vector<std::int64_t> rows{frame};
  if (single_) {
    rows.resize(static_cast<std::size_t>(source_->arrays()[array_].rows));
    std::iota(rows.begin(), rows.end(), 0);
  }
  const data::RowsTo place{array_, to};
  source_->read(rows, {&place, 1});
}

}  // namespace superstep::peaks
