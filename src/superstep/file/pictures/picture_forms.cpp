#include "superstep/file/pictures/picture_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/pictures/picture_list.h"
#include "superstep/file/pictures/picture_rows.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using namespace pictures;

[[noreturn]] void rethrow_with_advice(const Error& error) {
  if (error.code() != ErrorCode::bad_file && error.code() != ErrorCode::unsupported) throw error;
  constexpr const char* advice = "--skip-broken looks at all first, and leaves such ones out";
  throw Error(error.code(), error.message(), error.where(),
              error.hint().empty() ? advice : fmt::format("{}; {}", error.hint(), advice));
}

template <class T>
void keep(std::vector<T>& values, const std::vector<std::int64_t>& rows) {
  if (values.empty()) return;
  std::vector<T> kept;
  for (const std::int64_t row : rows) kept.push_back(std::move(values[static_cast<std::size_t>(row)]));
  values = std::move(kept);
}

// Of the rows that are kept, those that train.
std::optional<std::int64_t> training_of(const std::optional<std::int64_t>& training,
                                        const std::vector<std::int64_t>& rows) {
  if (!training) return std::nullopt;
  return std::ranges::lower_bound(rows, *training) - rows.begin();
}

void put_number(std::int64_t number, std::byte* to) { std::memcpy(to, &number, sizeof number); }

// The array of pictures: as it is wanted, else as the first picture is.
SourceArray array_of_pictures(const SourceRequest& request, const fs::path& first,
                              const std::string& taken = {}) {
  if (!request.wanted.empty()) return picture_array(request, "image", taken);
  const Picture picture = read_picture(first);
  return {.name = "image",
          .type = ElementType::u8,
          .row = Shape{picture.channels, picture.height, picture.width}};
}

// What sources of pictures share.
class PictureSource : public SampleSource {
 public:
  explicit PictureSource(const SourceRequest& request)
      : as_they_are_(request.wanted.empty() && !request.options.contains("fit")) {}
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  std::vector<std::string> notes() const override { return notes_; }
  std::optional<std::int64_t> training_rows() const override { return training_; }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (const RowsTo& to : wanted) try {
          put(to.array, rows[i], to.to + i * arrays_[to.array].row_bytes());
        } catch (const Error& error) {
          rethrow_with_advice(error);
        }
  }

 protected:
  virtual void put(std::size_t array, std::int64_t row, std::byte* to) const = 0;
  void add(SourceArray array, std::size_t rows) {
    array.rows = static_cast<std::int64_t>(rows);
    arrays_.push_back(std::move(array));
  }

  // Where the files say which rows train, 0 of those and 1 of the others.
  void add_part(std::size_t rows) {
    part_ = arrays_.size();
    if (training_) add({.name = "part", .type = ElementType::i64, .row = Shape{}}, rows);
  }
  bool put_part(std::size_t array, std::int64_t row, std::byte* to) const {
    if (array != part_) return false;
    put_number(row < *training_ ? 0 : 1, to);
    return true;
  }

  // Nobody said in which size they are wanted: all have that of the first.
  void require_own_size(const Picture& picture, const fs::path& path) const {
    const auto& extents = arrays_[0].row.extents();
    if (!as_they_are_ || (picture.height == extents[1] && picture.width == extents[2])) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("has {} x {} pixels, the first picture {} x {}", picture.width, picture.height,
                            extents[2], extents[1]),
                path.string(), "a model brings them to its own size; others need pictures of one size");
  }

  std::vector<SourceArray> arrays_;
  std::vector<std::string> notes_;
  std::optional<std::int64_t> training_;
  std::size_t part_ = std::string::npos;
  bool as_they_are_;
};

class LabelledSource : public PictureSource {
 public:
  LabelledSource(PictureList list, const SourceRequest& request)
      : PictureSource(request), list_(std::move(list)) {
    notes_ = list_.notes;
    if (request.skip_broken) skip_broken();
    training_ = list_.training;
    add(array_of_pictures(request, path(0)), list_.paths.size());
    if (list_.labels.empty()) return;
    SourceArray label = number_array(request, "label", true);
    label.classes = list_.classes;
    add(std::move(label), list_.paths.size());
    add_part(list_.paths.size());
  }

  std::string place(std::size_t, std::int64_t row) const override { return path(row).string(); }

 protected:
  void put(std::size_t array, std::int64_t row, std::byte* to) const override {
    if (put_part(array, row, to)) return;
    if (array > 0) return put_number(list_.labels[static_cast<std::size_t>(row)], to);
    const Picture picture = read_picture(path(row));
    require_own_size(picture, path(row));
    put_picture(picture, arrays_[0], to);
  }

 private:
  fs::path path(std::int64_t row) const { return list_.root / list_.paths[static_cast<std::size_t>(row)]; }

  void skip_broken() {
    const auto rows = readable(
        static_cast<std::int64_t>(list_.paths.size()), [&](std::int64_t row) { read_picture(path(row)); },
        notes_);
    list_.training = training_of(list_.training, rows);
    keep(list_.paths, rows);
    keep(list_.labels, rows);
    if (rows.empty())
      throw Error(ErrorCode::bad_file, "none of its pictures can be read", list_.root.string());
  }

  PictureList list_;
};

class PairSource : public PictureSource {
 public:
  PairSource(PairList list, const SourceRequest& request) : PictureSource(request), list_(std::move(list)) {
    notes_ = list_.notes;
    if (request.skip_broken) skip_broken();
    training_ = list_.training;
    add(array_of_pictures(request, picture(0), "mask"), list_.pictures.size());
    add(mask_array(request), list_.pictures.size());
    add(number_array(request, "patient", false), list_.pictures.size());
    add_part(list_.pictures.size());
  }

  std::optional<std::size_t> group() const override { return 2; }
  std::string place(std::size_t array, std::int64_t row) const override {
    return (array == 1 ? mask(row) : picture(row)).string();
  }

 protected:
  void put(std::size_t array, std::int64_t row, std::byte* to) const override {
    if (put_part(array, row, to)) return;
    if (array == 2) return put_number(list_.groups[static_cast<std::size_t>(row)], to);
    const fs::path path = array == 0 ? picture(row) : mask(row);
    const Picture found = read_picture(path);
    require_own_size(found, path);
    if (array == 0) return put_picture(found, arrays_[0], to);
    put_mask(found, threshold(row), arrays_[1], to);
  }

 private:
  fs::path picture(std::int64_t row) const {
    return list_.root / list_.pictures[static_cast<std::size_t>(row)];
  }
  fs::path mask(std::int64_t row) const { return list_.root / list_.masks[static_cast<std::size_t>(row)]; }

  // What a JPEG's compression leaves around a mask is no mask.
  int threshold(std::int64_t row) const {
    const std::string end = mask(row).extension().string();
    return end.starts_with(".j") || end.starts_with(".J") ? 128 : 1;
  }

  // As large as the picture, where nobody says how it is wanted.
  SourceArray mask_array(const SourceRequest& request) const {
    const SourceArray& image = arrays_[0];
    const bool asked = std::ranges::any_of(request.wanted, [&](const SourceArray& each) {
      return each.row.rank() > 1 && each.name != image.name;
    });
    if (asked) return picture_array(request, "mask", image.name);
    const int rank = image.row.rank();
    return {.name = "mask", .type = image.type, .row = Shape{1, image.row[rank - 2], image.row[rank - 1]}};
  }

  void require_same_size(std::int64_t row) const {
    const Picture a = read_picture(picture(row)), b = read_picture(mask(row));
    if (a.width != b.width || a.height != b.height)
      throw Error(
          ErrorCode::bad_file,
          fmt::format("has {} x {} pixels, its picture {} x {}", b.width, b.height, a.width, a.height),
          mask(row).string());
  }

  void skip_broken() {
    const auto rows = readable(
        static_cast<std::int64_t>(list_.pictures.size()), [&](std::int64_t row) { require_same_size(row); },
        notes_);
    list_.training = training_of(list_.training, rows);
    keep(list_.pictures, rows);
    keep(list_.masks, rows);
    keep(list_.groups, rows);
    if (rows.empty())
      throw Error(ErrorCode::bad_file, "none of its pictures can be read", list_.root.string());
  }

  PairList list_;
};

}  // namespace

std::unique_ptr<SampleSource> open_class_folder(const fs::path& path, const SourceRequest& request) {
  return std::make_unique<LabelledSource>(list_classes(path), request);
}

std::unique_ptr<SampleSource> open_picture_table(const fs::path& path, const SourceRequest& request) {
  return std::make_unique<LabelledSource>(list_table(path), request);
}

std::unique_ptr<SampleSource> open_plain_pictures(const fs::path& path, const SourceRequest& request) {
  return std::make_unique<LabelledSource>(list_pictures(path), request);
}

std::unique_ptr<SampleSource> open_picture_file(const fs::path& path, const SourceRequest& request) {
  PictureList list;
  list.paths.push_back(path);
  return std::make_unique<LabelledSource>(std::move(list), request);
}

std::unique_ptr<SampleSource> open_picture_pairs(const fs::path& path, const SourceRequest& request) {
  return std::make_unique<PairSource>(list_pairs(path), request);
}

}  // namespace superstep::data
