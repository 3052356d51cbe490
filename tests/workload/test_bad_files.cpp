// Files of tables: what is not a number, cut short or not there is named, whichever workload reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/workload.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::workload {
namespace {

struct Table {
  const char* workload;
  std::vector<std::string> options;    // of the model
  std::vector<std::string> generator;  // of the data
  std::vector<std::string> fields;     // of floating numbers that are read, the input first
};

void PrintTo(const Table& table, std::ostream* out) { *out << table.workload; }

class TableFiles : public ::testing::TestWithParam<Table> {
 protected:
  // A file of the generator's fields with two samples of zeros, `odd` in the middle of the second of one of
  // them.
  std::filesystem::path written(const std::string& broken, double odd,
                                const std::string& left_out = {}) const {
    const auto path = folder_ / (broken + left_out + ".h5");
    data::Hdf5Writer file(path);
    const auto generator = make_generator(GetParam().workload, GetParam().generator);
    for (const data::Field& field : generator->fields()) {
      if (field.name == left_out) continue;
      std::vector<std::int64_t> extents{2};
      extents.insert(extents.end(), field.shape.begin(), field.shape.end());
      Tensor rows(field.type, Shape(extents));
      if (field.name == broken) rows.set(rows.element_count() * 3 / 4, odd);
      file.write(field.name, rows);
    }
    file.close();
    return path;
  }

  void open(const std::filesystem::path& path) {
    open_task(find_workload(GetParam().workload),
              {.data = path, .model_options = GetParam().options, .pool = &pool_});
  }

  ScratchFolder folder_;
  ThreadPool pool_{1};
};

TEST_P(TableFiles, AreReadWhereAllIsFinite) { EXPECT_NO_THROW(open(written({}, 0))); }

TEST_P(TableFiles, NameTheFieldAndThePlaceOfWhatIsNotANumber) {
  for (const std::string& field : GetParam().fields) {
    expect_error(ErrorCode::bad_file, {field + ".h5", "'" + field + "'", "nan at [1"},
                 [&] { open(written(field, std::nan(""))); });
    expect_error(ErrorCode::bad_file, {field + ".h5", "inf at [1"},
                 [&] { open(written(field, std::numeric_limits<double>::infinity())); });
  }
}

TEST_P(TableFiles, NameWhatIsMissingOrCutShort) {
  const std::string& input = GetParam().fields[0];
  expect_error(ErrorCode::not_found, {input + ".h5", input}, [&] { open(written({}, 0, input)); });
  const auto whole = written({}, 0), cut = folder_ / "cut.h5";
  const std::string bytes = read_text_file(whole);
  std::ofstream(cut, std::ios::binary) << bytes.substr(0, bytes.size() * 6 / 10);
  expect_error(ErrorCode::bad_file, {"cut.h5"}, [&] { open(cut); });
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, TableFiles,
    ::testing::Values(
        Table{"ptychonn-64", {"window=32"}, {"window=32"}, {"diff", "amp", "phase"}},
        Table{"ptychonn-128", {"window=32"}, {"window=32"}, {"diff", "phase"}},
        Table{"autophasenn", {"size=16"}, {"size=16", "diameter=0.4..0.7"}, {"diff", "amp", "phase"}},
        Table{"cookienetae", {}, {}, {"Y_train"}},
        Table{"pca-compress-128", {"side=32"}, {"window=32", "points=1280", "photons=1e6"}, {"frame"}},
        Table{"mlp", {}, {}, {"x", "target"}}, Table{"lstm", {}, {}, {"x", "target"}}),
    [](const auto& each) {
      std::string name = each.param.workload;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace superstep::workload
