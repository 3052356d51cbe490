#include "superstep/file/pictures/picture_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/pictures/resample.h"

namespace superstep::data::pictures {
namespace {

std::int64_t channels_of(const SourceArray& array) { return array.row.rank() == 3 ? array.row[0] : 1; }
int height_of(const SourceArray& array) { return static_cast<int>(array.row[array.row.rank() - 2]); }
int width_of(const SourceArray& array) { return static_cast<int>(array.row[array.row.rank() - 1]); }

bool is_picture(const SourceArray& array) {
  const int rank = array.row.rank();
  if ((rank != 2 && rank != 3) || (channels_of(array) != 1 && channels_of(array) != 3)) return false;
  constexpr std::int64_t most = 1 << 16;  // pixels a side that anybody trains on
  return height_of(array) > 0 && width_of(array) > 0 && height_of(array) <= most && width_of(array) <= most &&
         (array.type == ElementType::u8 || array.type == ElementType::f32);
}

bool is_whole_number(const SourceArray& array) {
  return array.row.element_count() == 1 && !is_floating(array.type);
}

std::string named_reason(const Error& error) {
  const std::string where = error.where();
  return where.empty() ? error.message() : fmt::format("{} {}", where, error.message());
}

// Pixels of a plane a time: [height, width, channels] becomes [channels, height, width].
template <class Put>
void for_planes(const Picture& picture, const Put& put) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  const std::size_t pixels = picture.pixels.size() / channels;
  const std::uint8_t* from = picture.pixels.data();
  if (channels == 3) {  // once over the pixels, in place of three times
    for (std::size_t i = 0; i < pixels; ++i, from += 3)
      put(i, from[0]), put(pixels + i, from[1]), put(2 * pixels + i, from[2]);
    return;
  }
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) put(c * pixels + i, picture.pixels[i * channels + c]);
}

void put_bytes(const Picture& picture, const SourceArray& array, std::byte* to, float per_unit) {
  if (array.type == ElementType::u8)
    return for_planes(picture, [&](std::size_t at, std::uint8_t value) { to[at] = std::byte{value}; });
  auto* numbers = reinterpret_cast<float*>(to);
  for_planes(picture,
             [&](std::size_t at, std::uint8_t value) { numbers[at] = static_cast<float>(value) / per_unit; });
}

}  // namespace

SourceArray picture_array(const SourceRequest& request, const std::string& name, const std::string& taken) {
  const auto as_wanted = [](const SourceArray& wanted) {
    return SourceArray{.name = wanted.name, .type = wanted.type, .row = wanted.row};
  };
  std::string what = "nothing that is a picture is wanted of them";
  for (const SourceArray& wanted : request.wanted) {
    if (wanted.name != name) continue;
    if (is_picture(wanted)) return as_wanted(wanted);
    what = fmt::format("'{}' is wanted as {} {}", name, name_of(wanted.type), to_string(wanted.row));
  }
  for (const SourceArray& wanted : request.wanted)
    if (wanted.name != taken && is_picture(wanted)) return as_wanted(wanted);
  throw Error(ErrorCode::unsupported, what, "pictures",
              "they become bytes or f32 of [height, width] or [channels, height, width], 1 or 3 channels");
}

SourceArray number_array(const SourceRequest& request, const std::string& name, bool any) {
  for (const bool by_name : {true, false})
    for (const SourceArray& wanted : request.wanted)
      if ((by_name ? wanted.name == name : any) && is_whole_number(wanted))
        return {.name = wanted.name, .type = ElementType::i64, .row = wanted.row};
  return {.name = name, .type = ElementType::i64, .row = Shape{}};
}

void put_picture(const Picture& picture, const SourceArray& array, std::byte* to) {
  const bool fits = picture.width == width_of(array) && picture.height == height_of(array);
  if (fits && picture.channels == channels_of(array)) return put_bytes(picture, array, to, 255.0f);
  const Picture fitting = covering(channels_of(array) == 3 ? in_color(picture) : in_gray(picture),
                                   width_of(array), height_of(array));
  put_bytes(fitting, array, to, 255.0f);
}

void put_mask(const Picture& mask, int threshold, const SourceArray& array, std::byte* to) {
  Picture fitting = covering_nearest(in_gray(mask), width_of(array), height_of(array));
  for (std::uint8_t& pixel : fitting.pixels) pixel = pixel >= threshold ? 1 : 0;
  put_bytes(channels_of(array) == 3 ? in_color(std::move(fitting)) : fitting, array, to, 1.0f);
}

std::vector<std::int64_t> readable(std::int64_t rows, const std::function<void(std::int64_t row)>& read,
                                   std::vector<std::string>& notes) {
  std::map<std::int64_t, std::string> broken;
  std::mutex mutex;
  std::int64_t done = 0;
  Progress progress = Progress::passing("looking for broken pictures", static_cast<double>(rows), "pictures");
  InterruptCheck stop;
  ThreadPool pool(available_processors());
  pool.parallel_for(rows, [&](std::int64_t row, int) {
    std::string reason;
    try {
      read(row);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_file && error.code() != ErrorCode::unsupported) throw;
      reason = named_reason(error);
    }
    const std::lock_guard lock(mutex);
    stop.throw_if_due("pictures");
    progress.update(static_cast<double>(++done));
    if (!reason.empty()) broken.emplace(row, reason);
  });
  std::vector<std::int64_t> sound;
  for (std::int64_t row = 0; row < rows; ++row)
    if (!broken.contains(row)) sound.push_back(row);
  if (broken.empty()) return sound;
  constexpr std::size_t most_named = 10;  // in words; chosen
  std::vector<std::string> reasons;
  for (const auto& [row, reason] : broken)
    if (reasons.size() < most_named) reasons.push_back(reason);
  notes.push_back(fmt::format("{} of {} pictures cannot be read, and are left out: {}{}",
                              format_count(static_cast<double>(broken.size())),
                              format_count(static_cast<double>(rows)), join(reasons, "; "),
                              broken.size() > most_named ? "; ..." : ""));
  return sound;
}

}  // namespace superstep::data::pictures
