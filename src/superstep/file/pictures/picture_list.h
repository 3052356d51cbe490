// Which pictures a folder or a table names, what each shows, and which train: no picture is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace superstep::data {

struct PictureList {
  std::filesystem::path root;
  std::vector<std::filesystem::path> paths;  // below the root
  std::vector<std::int64_t> labels;          // as many; empty: nobody said what they show
  std::vector<std::string> classes;          // names of the labels; empty where they are numbers alone
  std::optional<std::int64_t> training;      // the first so many train, where the files say so
  std::vector<std::string> notes;            // what was left out
};

// A folder with a folder a class, and pictures in it or below; or those in train/ and val/ (valid,
// validation, test where there is neither). Classes are numbered in the order of their names. Pictures of
// every class are spread evenly over the whole, in an order that depends on their names alone, so that the
// first of them show what the last do. Names that begin with a dot are passed over. Throws Error (bad_file)
// naming what is wrong.
bool holds_classes(const std::filesystem::path& folder);
PictureList list_classes(const std::filesystem::path& folder);

// A folder of nothing but pictures: without labels, in the order of their names, numbers in them by value.
bool holds_pictures(const std::filesystem::path& folder);
PictureList list_pictures(const std::filesystem::path& folder);

// One picture in a file: a TIFF is taken for a stack of images.
bool is_one_picture(const std::filesystem::path& path);

// A CSV or TSV table with a column of paths (path, file, filename, image), relative to its folder, one of
// labels (label, class, category, target: whole numbers, or names) or none, and perhaps one that says which
// train (split, set, subset, fold: train, or val, valid, validation, test).
bool names_pictures(const std::filesystem::path& table);
PictureList list_table(const std::filesystem::path& table);

// Pictures with a mask each.
struct PairList {
  std::filesystem::path root;
  std::vector<std::filesystem::path> pictures, masks;  // below the root
  std::vector<std::int64_t> groups;  // those of one number belong together: a patient's; ascending
  std::optional<std::int64_t> training;
  std::vector<std::string> notes;
};

// X.tif beside X_mask.tif, in the folder or in folders of it, each of which is a patient (LGG MRI
// segmentation, kaggle_3m); or images/ and masks/ (or img, imgs, image; mask, label, labels, annotations)
// with pictures of the same names, "_mask" and the like at their end left out; perhaps in train/ and val/.
// Patients come in an order that depends on their names alone, their slices in the order of their numbers.
bool holds_pairs(const std::filesystem::path& folder);
PairList list_pairs(const std::filesystem::path& folder);

}  // namespace superstep::data
