// Databases of atoms, as ASE writes them.
#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/atoms/ase_database.h"
#include "superstep/file/atoms/labelled_frames.h"
#include "superstep/file/npz.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// Crystals with everything that a calculator says, molecules without forces, and a slab.
constexpr const char* writes_databases = R"(
import sqlite3
import numpy as np
from ase import Atoms
from ase.calculators.singlepoint import SinglePointCalculator
from ase.db import connect
rng = np.random.default_rng(4)
n = 5
positions, cells = rng.normal(size=(n, 4, 3)), np.eye(3) * 9 + rng.normal(size=(n, 3, 3)) / 9
energy, forces, stress = rng.normal(size=n), rng.normal(size=(n, 4, 3)), rng.normal(size=(n, 6))
with connect('crystals.db') as base:
    for i in range(n):
        atoms = Atoms('Al2O2', positions[i], cell=cells[i], pbc=True)
        atoms.calc = SinglePointCalculator(atoms, energy=energy[i], forces=forces[i], stress=stress[i])
        base.write(atoms, name=f'crystal {i}')
volume = np.abs(np.linalg.det(cells))
full = np.stack([stress[:, k] for k in [0, 5, 4, 5, 1, 3, 4, 3, 2]], 1)
np.savez('expected.npz', positions=positions, cells=cells, energy=energy, forces=forces, virial=-full * volume[:, None])
connect('molecules.db').write(Atoms('OH2', positions[0, :3]))
connect('slab.db').write(Atoms('OH2', positions[0, :3], cell=np.eye(3), pbc=[True, True, False]))
other = sqlite3.connect('other.db')
other.execute('create table things (a)')
other.commit()
whole = sqlite3.connect('short.db')
connect('short.db').write(Atoms('OH2', positions[0, :3]))
whole.execute("update systems set positions = x'0011223344556677'")
whole.commit()
)";

class AseDatabase : public testing::Test {
 protected:
  void write() {
    const std::string python = python_with("ase.db, numpy");
    if (python.empty()) GTEST_SKIP() << "ase is not installed: tools/setup-oracles installs it";
    ASSERT_TRUE(run_python(python, folder / ".", writes_databases));
  }
  const ScratchFolder folder;
};

TEST_F(AseDatabase, HoldsConfigurationsWithTheirLabels) {
  ASSERT_NO_FATAL_FAILURE(write());
  if (IsSkipped()) return;
  const NamedTensors expected = read_npz(folder / "expected.npz");
  const LabelledFrames read = read_labelled_frames(folder / "crystals.db");
  ASSERT_EQ(read.frames.size(), 5u);
  EXPECT_NE(read.place[2].find("crystals.db: row 3"), std::string::npos) << read.place[2];
  for (std::size_t f = 0; f < 5; ++f) {
    const auto& [configuration, labels] = read.frames[f];
    const auto row = static_cast<std::int64_t>(f);
    EXPECT_EQ(configuration.elements, (std::vector<int>{13, 13, 8, 8}));
    for (std::size_t a = 0; a < 4; ++a) {
      const std::int64_t at = 12 * row + 3 * static_cast<std::int64_t>(a);
      EXPECT_EQ(configuration.positions[a].y, expected.at("positions").at(at + 1));
      EXPECT_EQ(labels.forces[a].z, expected.at("forces").at(at + 2));
    }
    ASSERT_TRUE(configuration.cell && labels.energy && labels.virial);
    EXPECT_EQ(configuration.cell->b.x, expected.at("cells").at(9 * row + 3));
    EXPECT_EQ(*labels.energy, expected.at("energy").at(row));
    for (std::int64_t k = 0; k < 9; ++k)
      EXPECT_NEAR((*labels.virial)[static_cast<std::size_t>(k)], expected.at("virial").at(9 * row + k), 1e-9);
  }
  EXPECT_EQ(read_labelled_frames(folder / "crystals.db", 2).frames.size(), 2u);
  const DeepmdFrame molecule = read_labelled_frames(folder / "molecules.db").frames.at(0);
  EXPECT_FALSE(molecule.configuration.cell || molecule.labels.energy || !molecule.labels.forces.empty());
}

TEST_F(AseDatabase, ThatIsNoneOrDamagedIsRefusedWithItsRow) {
  ASSERT_NO_FATAL_FAILURE(write());
  if (IsSkipped()) return;
  expect_error(ErrorCode::unsupported, {"slab.db: row 1", "periodic along some axes alone"},
               [&] { read_labelled_frames(folder / "slab.db"); });
  expect_error(ErrorCode::bad_file, {"other.db", "without a table 'systems'"},
               [&] { read_labelled_frames(folder / "other.db"); });
  expect_error(ErrorCode::bad_file, {"short.db: row 1", "'positions' has 8 bytes"},
               [&] { read_labelled_frames(folder / "short.db"); });
  const std::string whole = read_text_file(folder / "crystals.db");
  for (std::size_t at = 20; at < whole.size(); at += 1 + whole.size() / 80) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x24);
    write_file_atomically(folder / "damaged.db", std::string_view(bytes));
    try {
      read_labelled_frames(folder / "damaged.db");
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("damaged.db"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace superstep::data
