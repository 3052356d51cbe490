#include <gtest/gtest.h>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/hdf5/pytables.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

void write_frames(const std::filesystem::path& path) {
  PandasWriter file(path);
  file.create("x_train_0", 5, {"g1", "g2", "g3"});
  file.create("y_train", 5, {"AUC"}, {"Sample", "Drug1"}, 8);
  for (std::int64_t first = 0; first < 5; first += 2) {
    std::vector<float> x, y;
    std::vector<std::vector<std::string>> names(2);
    for (std::int64_t i = first; i < std::min<std::int64_t>(first + 2, 5); ++i) {
      for (int g = 0; g < 3; ++g) x.push_back(static_cast<float>(10 * i + g));
      y.push_back(0.5f * static_cast<float>(i));
      names[0].push_back("CELL" + std::to_string(i));
      names[1].push_back("D" + std::to_string(i % 2));
    }
    file.write_rows("x_train_0", first, x);
    file.write_rows("y_train", first, y, names);
  }
  file.close();
}

TEST(PyTables, ReadsWhatItWrites) {
  const ScratchFolder folder;
  write_frames(folder / "a.h5");
  EXPECT_EQ(folder.file_count(), 1);
  const PandasFile file(folder / "a.h5");
  EXPECT_EQ(file.keys(), (std::vector<std::string>{"x_train_0", "y_train"}));
  EXPECT_EQ(file.rows("x_train_0"), 5);
  const PandasFrame x = file.read("x_train_0", 1, 3), y = file.read("y_train", 0, 5);
  EXPECT_EQ(x.columns, (std::vector<std::string>{"g1", "g2", "g3"}));
  EXPECT_EQ(x.values.shape(), (Shape{3, 3}));
  EXPECT_EQ(x.values.at(0), 10);
  EXPECT_EQ(x.values.at(8), 32);
  EXPECT_EQ(y.columns, std::vector<std::string>{"AUC"});
  EXPECT_EQ(y.values.at(4), 2);
  EXPECT_EQ(y.text.at("Sample")[3], "CELL3");
  EXPECT_EQ(y.text.at("Drug1")[3], "D1");
}

TEST(PyTables, FiveThousandColumnsFit) {
  const ScratchFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 5270; ++i) names.push_back("D" + std::to_string(i));
  PandasWriter writer(folder / "wide.h5");
  writer.create("x", 1, names);
  writer.write_rows("x", 0, std::vector<float>(5270, 1.5f));
  writer.close();
  const PandasFrame frame = PandasFile(folder / "wide.h5").read("x", 0, 1);
  EXPECT_EQ(frame.columns, names);
  EXPECT_EQ(frame.values.at(5269), 1.5);
}

TEST(PyTables, ReadsListsOfBothPythons) {
  const std::vector<std::string> names = {"a", "b c"};
  EXPECT_EQ(unpickle_strings("(lp0\nVa\np1\naVb c\np2\na.", "x"), names);
  EXPECT_EQ(unpickle_strings("(lp1\nS'a'\np2\naS'b c'\np3\na.", "x"), names);
  EXPECT_EQ(unpickle_strings(pickle_strings(names), "x"), names);
  expect_error(ErrorCode::bad_file, {"x", "not pickled by protocol 0"},
               [] { unpickle_strings("\x80\x04]", "x"); });
}

TEST(PyTables, RefusesWithTheFrame) {
  const ScratchFolder folder;
  write_frames(folder / "a.h5");
  const PandasFile file(folder / "a.h5");
  expect_error(ErrorCode::not_found, {"a.h5: frame 'x_train_O'", "x_train_0"},
               [&] { file.read("x_train_O", 0, 1); });
  expect_error(ErrorCode::invalid_argument, {"frame 'y_train'", "rows 3 to 6 of 5"},
               [&] { file.read("y_train", 3, 3); });
  expect_error(ErrorCode::not_found, {"none.h5"}, [&] { PandasFile(folder / "none.h5"); });
  Hdf5Writer plain(folder / "plain.h5");
  plain.write("x/table", Tensor(ElementType::f32, {3}));
  plain.close();
  expect_error(ErrorCode::bad_file, {"plain.h5: frame 'x'", "does not consist of records"},
               [&] { PandasFile(folder / "plain.h5").read("x", 0, 3); });
}

TEST(PyTables, PandasReadsAndWrites) {
  const std::string python = python_with("pandas, tables");
  if (python.empty())
    GTEST_SKIP() << "no Python with the packages pandas, tables was found: tools/setup-oracles installs them";
  const ScratchFolder folder;
  write_frames(folder / "a.h5");
  EXPECT_TRUE(run_python(python, folder / "", R"(
import pandas as pd, numpy as np
x, y = pd.read_hdf('a.h5', 'x_train_0'), pd.read_hdf('a.h5', 'y_train')
assert list(x.columns) == ['g1', 'g2', 'g3'] and x.shape == (5, 3) and str(x.dtypes['g1']) == 'float32'
assert x.iloc[3, 2] == 32 and list(x.index) == [0, 1, 2, 3, 4]
assert list(y.columns) == ['AUC', 'Sample', 'Drug1'] and y.AUC[4] == 2 and y.Sample[4] == 'CELL4' and y.Drug1[4] == 'D0'
with pd.HDFStore('a.h5', 'r') as store:
    assert store.select('x_train_0', start=1, stop=3).shape == (2, 3)
    assert store.get_storer('y_train').nrows == 5
frame = pd.DataFrame({'AUC': np.array([.25, .75], 'f4'), 'Sample': ['x', 'yy'], 'dose': np.array([1., 2.])})
with pd.HDFStore('b.h5', 'w') as store:
    store.put('y', frame, format='table')
    store.put('z', frame, format='table', data_columns=['AUC'])
)"));
  const PandasFile file(folder / "b.h5");
  for (const std::string key : {"y", "z"}) {
    const PandasFrame frame = file.read(key, 0, 2);
    const auto column = std::find(frame.columns.begin(), frame.columns.end(), "AUC") - frame.columns.begin();
    EXPECT_EQ(frame.values.at(2 + column), 0.75) << key;
    EXPECT_EQ(frame.text.at("Sample"), (std::vector<std::string>{"x", "yy"})) << key;
  }
}

}  // namespace
}  // namespace superstep::data
