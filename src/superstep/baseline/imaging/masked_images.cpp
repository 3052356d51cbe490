#include "superstep/baseline/imaging/masked_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "superstep/base/error.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/tiff.h"

namespace superstep::baseline {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

class MaskedImages::Source {
 public:
  virtual ~Source() = default;
  virtual std::int64_t count() const = 0;
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual bool labelled() const = 0;
  virtual bool new_patient(std::int64_t k) const = 0;  // is image k > 0 of another one than the image before?
  virtual Bytes channel(int which, std::int64_t first, std::int64_t images) const = 0;
  virtual Bytes masks(std::int64_t first, std::int64_t images) const = 0;
};

namespace {

class Hdf5Images final : public MaskedImages::Source {
 public:
  explicit Hdf5Images(const fs::path& path) : file_(path) {
    const std::int64_t shape[] = {-1, 3, -1, -1};
    shape_ = file_.require_shape("image", shape).shape;
    if (shape_.element_count() == 0)
      throw Error(ErrorCode::bad_file, "has no images", path.string() + ": data set 'image'");
    const std::int64_t masks[] = {shape_[0], shape_[2], shape_[3]}, one[] = {shape_[0]};
    labelled_ = file_.contains("mask");
    if (labelled_) file_.require_shape("mask", masks);
    if (file_.contains("patient")) patient_ = file_.read("patient", ElementType::i64, one);
  }
  std::int64_t count() const override { return shape_[0]; }
  int height() const override { return static_cast<int>(shape_[2]); }
  int width() const override { return static_cast<int>(shape_[3]); }
  bool labelled() const override { return labelled_; }
  bool new_patient(std::int64_t k) const override {
    return patient_ && patient_->at(k) != patient_->at(k - 1);
  }
  Bytes channel(int which, std::int64_t first, std::int64_t images) const override {
    const std::int64_t from[] = {first, which, 0, 0}, size[] = {images, 1, shape_[2], shape_[3]};
    const Tensor block = file_.read_block("image", ElementType::u8, from, size);
    return {block.as<std::uint8_t>().begin(), block.as<std::uint8_t>().end()};
  }
  Bytes masks(std::int64_t first, std::int64_t images) const override {
    const Tensor block = file_.read_rows("mask", ElementType::u8, first, images);
    return {block.as<std::uint8_t>().begin(), block.as<std::uint8_t>().end()};
  }

 private:
  data::Hdf5File file_;
  Shape shape_;
  bool labelled_ = false;
  std::optional<Tensor> patient_;
};

// The number at the end of a name, by which slices are in order; 0 where there is none.
std::int64_t slice_number(const std::string& stem) {
  const std::size_t begin = stem.find_last_not_of("0123456789") + 1;
  std::int64_t number = 0;
  std::from_chars(stem.data() + begin, stem.data() + stem.size(), number);
  return number;
}

bool is_tiff(const fs::path& path) { return data::ends_in(path, {".tif", ".tiff"}); }

class TiffFolder final : public MaskedImages::Source {
 public:
  explicit TiffFolder(const fs::path& root) : root_(root) {
    for (const fs::path& folder : sorted_folders(root)) add_case(folder);
    if (slices_.empty())
      throw Error(ErrorCode::bad_file, "has no folders with images (CASE/CASE_1.tif)", root.string());
    const auto masked = std::ranges::count_if(slices_, [](const Slice& each) { return each.has_mask; });
    labelled_ = masked > 0;
    for (const Slice& each : slices_)
      if (labelled_ && !each.has_mask)
        throw Error(ErrorCode::bad_file, "has no mask, while others have", each.path.string(),
                    "give every image its mask, or none");
    const Tensor first = read_image(slices_.front().path);
    height_ = first.shape()[1];
    width_ = first.shape()[2];
  }
  std::int64_t count() const override { return static_cast<std::int64_t>(slices_.size()); }
  int height() const override { return static_cast<int>(height_); }
  int width() const override { return static_cast<int>(width_); }
  bool labelled() const override { return labelled_; }
  bool new_patient(std::int64_t k) const override {
    return slice(k).path.parent_path() != slice(k - 1).path.parent_path();
  }
  Bytes channel(int which, std::int64_t first, std::int64_t images) const override {
    Bytes all;
    for (std::int64_t k = first; k < first + images; ++k) {
      const Tensor image = read_image(slice(k).path);
      require_size(image, slice(k).path);
      const auto pixels = image.as<std::uint8_t>();
      for (std::size_t i = static_cast<std::size_t>(which); i < pixels.size(); i += 3)
        all.push_back(pixels[i]);
    }
    return all;
  }
  Bytes masks(std::int64_t first, std::int64_t images) const override {
    Bytes all;
    for (std::int64_t k = first; k < first + images; ++k) {
      const fs::path path = mask_of(slice(k).path);
      const Tensor mask = data::read_tiff(path);
      require_size(mask, path);
      if (mask.shape().rank() != 3 || mask.shape()[0] != 1 || mask.type() != ElementType::u8)
        throw Error(ErrorCode::bad_file, "is no mask: one page of 8-bit gray is expected", path.string());
      for (const std::uint8_t value : mask.as<std::uint8_t>()) all.push_back(value != 0);
    }
    return all;
  }

 private:
  struct Slice {
    fs::path path;
    bool has_mask;
  };
  static fs::path mask_of(const fs::path& image) {
    return image.parent_path() / (image.stem().string() + "_mask" + image.extension().string());
  }
  static std::vector<fs::path> sorted_folders(const fs::path& root) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.is_directory()) folders.push_back(entry.path());
    std::ranges::sort(folders);
    return folders;
  }
  void add_case(const fs::path& folder) {
    std::vector<fs::path> images;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_regular_file() && is_tiff(entry.path()) &&
          !entry.path().stem().string().ends_with("_mask"))
        images.push_back(entry.path());
    std::ranges::sort(images, {}, [](const fs::path& each) {
      return std::pair(slice_number(each.stem().string()), each.string());
    });
    for (const fs::path& image : images) slices_.push_back({image, fs::exists(mask_of(image))});
  }
  const Slice& slice(std::int64_t k) const { return slices_[static_cast<std::size_t>(k)]; }
  static Tensor read_image(const fs::path& path) {
    Tensor image = data::read_tiff(path);
    if (image.type() != ElementType::u8 || image.shape().rank() != 4 || image.shape()[0] != 1 ||
        image.shape()[3] != 3)
      throw Error(ErrorCode::bad_file, "is no image: one page of three 8-bit channels is expected",
                  path.string());
    return image;
  }
  void require_size(const Tensor& image, const fs::path& path) const {
    if (image.shape().rank() >= 3 && image.shape()[1] == height_ && image.shape()[2] == width_) return;
    throw Error(ErrorCode::bad_file,
                fmt::format("has the shape {}, the first image has {} x {} px", to_string(image.shape()),
                            width_, height_),
                path.string());
  }

  fs::path root_;
  std::vector<Slice> slices_;
  bool labelled_ = false;
  std::int64_t height_ = 0, width_ = 0;
};

}  // namespace

MaskedImages::MaskedImages(const fs::path& path) {
  if (fs::is_directory(path))
    source_ = std::make_unique<TiffFolder>(path);
  else
    source_ = std::make_unique<Hdf5Images>(path);
}
MaskedImages::~MaskedImages() = default;

std::int64_t MaskedImages::count() const { return source_->count(); }
int MaskedImages::height() const { return source_->height(); }
int MaskedImages::width() const { return source_->width(); }
bool MaskedImages::labelled() const { return source_->labelled(); }
Bytes MaskedImages::channel(int which, std::int64_t first, std::int64_t images) const {
  return source_->channel(which, first, images);
}
Bytes MaskedImages::masks(std::int64_t first, std::int64_t images) const {
  return source_->masks(first, images);
}

std::vector<std::pair<std::int64_t, std::int64_t>> MaskedImages::volumes() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs{{0, 0}};
  for (std::int64_t k = 0; k < count(); ++k) {
    if (k > 0 && source_->new_patient(k)) runs.emplace_back(k, 0);
    ++runs.back().second;
  }
  return runs;
}

}  // namespace superstep::baseline
