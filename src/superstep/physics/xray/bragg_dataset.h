// Bragg peaks for training and testing, from a file of patches, a file of frames or the generator.
//
// A file of patches, or several, of any form of arrays (file/source/forms.h), has `patch` [n,s,s] or
// [n,1,s,s] and `ploc` [n,2]; a file of frames has `frames` [F,H,W], `peak_row`, `peak_col` (px),
// `peak_fidx`, `npeaks` and `deviations` [n]. Everything is checked when the file is opened: shapes, types,
// equal n, NaN, labels in range; NaN in patches that do not fit into memory when they are read.
//
// From frames, peaks with npeaks = 1 and 0 <= deviation < 1 are taken; the patch is cropped around
// truncate(centre) + shift, with zeros beyond the edge, and cleaned of all but its own connected component.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/file/source/sample_rows.h"
#include "superstep/physics/xray/bragg_generator.h"

namespace superstep::data {

struct BraggDatasetSettings {
  int patch_size = 11;           // px of the patches given out; 0: as the file says
  bool centered_labels = true;   // (column, row) / patch size - 0.5, otherwise without the -0.5
  bool labels_required = true;   // false: a file of patches may lack `ploc`
  std::filesystem::path labels;  // a file whose `ploc` [n,2] is used instead (a fit); only for patches
  double memory = 0;     // bytes that patches of a file may take, else they are read as they are wanted; 0: a
                         // quarter of what is free
  int frame_margin = 1;  // px kept around patches cropped from frames, for the shift
};

class BraggDataset {
 public:
  // Throws Error that names the file and the data set.
  static BraggDataset open(const std::filesystem::path& path, const BraggDatasetSettings& settings = {});
  // Samples [first, first + count) of the generator; settings.margin >= 1 allows shifts.
  static BraggDataset generate(const BraggPatchSettings& patches, std::uint64_t seed, std::uint64_t first,
                               std::uint64_t count, ThreadPool& pool,
                               const BraggDatasetSettings& settings = {});

  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  int patch_size() const { return settings_.patch_size; }
  bool has_labels() const { return !positions_.empty(); }
  bool reads_as_it_goes() const { return stored_ && !stored_->held(); }  // of a file that is too large
  // Of the file's form, for people.
  std::vector<std::string> notes() const {
    return stored_ ? stored_->source().notes() : std::vector<std::string>();
  }
  ForcedOrder forced_order() const { return stored_ ? stored_->forced_order() : ForcedOrder(); }
  bool can_shift() const { return margin_ > 0; }  // is there room for the augmentation?
  // How many samples come from the first `share` of the file's rows: the published split, without
  // shuffling, trains on these and validates on the rest.
  std::int64_t training_count(double share = 0.8) const;

  // Fills a batch: patches [b,1,p,p] scaled to [0,1], labels [b,2] (column, row). With `augment` the crop is
  // shifted by -1, 0 or +1 px in each direction, as a function of (seed, epoch, index) alone. Thread-safe.
  // Throws Error (invalid_argument) when there is no room to shift, or no labels and `labels` is not null.
  void fill(std::span<const std::int64_t> indices, std::uint64_t seed, std::uint64_t epoch, float* patches,
            float* labels, bool augment) const;

  // A patch in counts, not shifted, for the conventional methods.
  void raw(std::int64_t index, std::span<float> patch) const;
  // The row of the file (or the index of the generator) that a sample is.
  std::int64_t row(std::int64_t index) const { return rows_[static_cast<std::size_t>(index)]; }
  // (column, row) of the centre in that patch, px.
  std::array<double, 2> position(std::int64_t index) const;

 private:
  BraggDataset() = default;
  void read_patches(const std::filesystem::path& path);
  void read_labels(const SampleSource& source, const std::filesystem::path& path);
  void read_frames(const std::filesystem::path& path);
  // The patches of these samples as they are stored, and which of them are theirs.
  struct Stored {
    Tensor patches;
    bool all = true;  // of all samples, by their numbers; else of those that were asked for, as they come
  };
  Stored stored_of(std::span<const std::int64_t> indices) const;
  void cut(const Stored& stored, std::size_t at, std::int64_t index, std::array<int, 2> shift,
           std::span<float> patch) const;

  BraggDatasetSettings settings_;
  int margin_ = 0;
  bool clean_ = false;
  std::int64_t file_rows_ = 0;
  Tensor patches_;                            // f32 [n, s, s], s = patch size + 2 margin
  std::shared_ptr<const SampleRows> stored_;  // of a file of patches, in place of them
  std::vector<float> positions_;              // [n, 2] px from the centre of the stored patch's first pixel
  std::vector<std::int64_t> rows_;            // the row of the file that a sample is
};

}  // namespace superstep::data
