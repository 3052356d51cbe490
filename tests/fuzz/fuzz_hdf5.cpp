// Any bytes are either a file whose data sets can be read, or refused with an Error; so are data frames in
// it. Says at its end how many inputs the HDF5 library did not survive, in the child process that reads.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/pytables.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace superstep;

constexpr std::int64_t most_elements = 1 << 20;  // a damaged header may claim any number

// What became of the inputs; each counts once, for the worst that happened.
struct Tally {
  enum Outcome { read, refused, endless, crashed };
  long inputs[4] = {};
  ~Tally() {
    std::printf(
        "read %ld, refused in part or whole %ld, library stopped at its limit %ld, library crashed %ld\n",
        inputs[read], inputs[refused], inputs[endless], inputs[crashed]);
    const bool many = inputs[read] + inputs[refused] + inputs[endless] + inputs[crashed] > 100;
    if (many && inputs[read] == 0) std::abort();  // nothing was tried: seeds alone are read
  }
};

Tally::Outcome worst = Tally::read;

template <class Body>
void attempt(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string_view text = error.what();
    const Tally::Outcome outcome = !text.contains("the HDF5 library")        ? Tally::refused
                                   : text.contains("did not come to an end") ? Tally::endless
                                                                             : Tally::crashed;
    worst = std::max(worst, outcome);
  }
}

void read_arrays(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  attempt([&] { file.attributes(); });
  for (const data::DataSetInfo& info : file.data_sets()) {
    attempt([&] { file.attributes(info.name); });
    attempt([&] {
      if (info.type && info.shape.element_count() <= most_elements) file.read(info.name, ElementType::f32);
    });
    attempt([&] {
      if (info.type && info.shape.rank() > 0 && info.shape[0] > 1 &&
          info.shape.element_count() <= most_elements)
        file.read_rows(info.name, ElementType::i32, 1, 1);
    });
    attempt([&] {
      if (info.type_name == "string" && info.shape.element_count() <= most_elements)
        file.read_strings(info.name);
    });
  }
}

void read_frames(const std::filesystem::path& path) {
  const data::PandasFile file(path);
  for (const std::string& key : file.keys())
    attempt([&] { file.read(key, 0, std::min<std::int64_t>(file.rows(key), 100)); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static Tally tally;
  worst = Tally::read;
  const InputFile file(data, size);
  attempt([&] { read_arrays(file.path()); });
  attempt([&] { read_frames(file.path()); });
  ++tally.inputs[worst];
  return 0;
}
