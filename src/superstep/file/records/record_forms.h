// Sources of the forms that hold records: one function a form, for the table in file/source/forms.cpp.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::data {

// Web data sets: members of one name are a sample. cls and id are whole numbers, npy arrays, json objects of
// numbers, pictures pictures.
std::unique_ptr<SampleSource> open_tar_source(const std::filesystem::path& path,
                                              const SourceRequest& request);

// TFRecord of tf.train.Example: features of floats and whole numbers, and of one text of bytes, a picture.
bool is_tfrecord(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_tfrecord_source(const std::filesystem::path& path,
                                                   const SourceRequest& request);

// LMDB (file/records/lmdb.h): a value a sample, as file/records/lmdb_values.h reads it.
std::unique_ptr<SampleSource> open_lmdb_source(const std::filesystem::path& path,
                                               const SourceRequest& request);

// An object of JSON a line.
bool is_json_lines(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_json_lines(const std::filesystem::path& path,
                                              const SourceRequest& request);

}  // namespace superstep::data
