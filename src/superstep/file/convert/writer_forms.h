// Inside of the writers' layer: what the table of forms is made of.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/file/convert/sample_writer.h"

namespace superstep::data {

// A mark as JSON. Throws Error (bad_file) unless it is an object.
nlohmann::json read_mark(const WriterPlace& place);

using SampleArraysToWrite = std::vector<SourceArray>;

std::unique_ptr<SampleWriter> open_hdf5_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                std::int64_t samples);
std::unique_ptr<SampleWriter> open_npz_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                               std::int64_t samples);
std::unique_ptr<SampleWriter> open_tar_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                               std::int64_t samples);
std::unique_ptr<SampleWriter> open_tfrecord_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                    std::int64_t samples);
std::unique_ptr<SampleWriter> open_parquet_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                   std::int64_t samples);
std::unique_ptr<SampleWriter> open_json_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                std::int64_t samples);
std::unique_ptr<SampleWriter> open_zarr2_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                 std::int64_t samples);
std::unique_ptr<SampleWriter> open_zarr3_samples(const WriterPlace& place, SampleArraysToWrite arrays,
                                                 std::int64_t samples);

}  // namespace superstep::data
