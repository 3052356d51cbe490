// Samples of any form written in another: streaming, whole or not at all, and read back to see that they are
// the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/file/source/sample_source.h"

namespace superstep::data {

struct ConvertRequest {
  std::filesystem::path out;
  std::string form;                 // of it; empty: as the name's ending says
  std::vector<std::string> arrays;  // those alone; empty: all
  // What the samples depend on: the files, the options they are read by. A call that is stopped or killed
  // leaves what it wrote, and the next with the same key goes on there. Empty: nothing is left.
  std::string resume_key = {};
  double save_seconds = 2;  // at least, between the places that can be gone on from: chosen
  // Read, packed and written at a time: chosen, so that every thread has some samples of a megabyte each.
  std::size_t block_bytes = 32 << 20;
};

struct ConvertedArray {
  SourceArray array;   // as the source has it
  std::string name;    // in the file that was written
  std::string sha256;  // of its elements, row-major, little-endian, in the source's type
};

struct Converted {
  std::string form;
  std::int64_t samples = 0;
  std::vector<ConvertedArray> arrays;
  std::int64_t continued_from = 0;  // samples that a stopped call had written
  std::vector<std::string> notes;   // what the form does not keep, for people
};

struct WriterForm;

// What is at `out` already: a file is replaced by a file, a folder by a folder where it is empty or a store
// of Zarr. Throws Error (invalid_argument) where it is neither.
void require_replaceable(const std::filesystem::path& out, const WriterForm& form);

// Takes a few blocks of samples in memory. The file appears under its name once it was read back and every
// array had the elements that the source gave; what was there before is replaced then. Errors leave no file,
// Ctrl-C (interrupted), a full disk and the end of the process what resume_key says: in a folder beside it,
// ".OUT.converting", that one call at a time works in. Throws Error: invalid_argument (no such array, no such
// form), unsupported (what the form does not hold, naming array and sample), bad_file and io (of the source,
// of the disk).
Converted convert_samples(const SampleSource& source, const ConvertRequest& request, ThreadPool& pool);

}  // namespace superstep::data
