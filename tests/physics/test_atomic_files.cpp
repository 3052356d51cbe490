#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/file/atoms/deepmd_set.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/atoms/labelled_frames.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/physics/materials/sutton_chen.h"
#include "tests/damage.h"
#include "tests/expect_error.h"
#include "tests/physics/workload_generators.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

const std::vector<std::string> small = {"cells=1", "frames=3", "equilibration=20", "interval=10", "cutoff=1"};

XyzFrame water() {
  XyzFrame frame;
  frame.configuration = {{8, 1, 1}, {{0, 0, 0}, {0.96, 0, 1e-17}, {-0.24, 0.93, -2}}, {}};
  frame.labels.energy = -1.0 / 3;
  frame.labels.forces = {{0.1, 0, 0}, {0, 0.2, 0}, {0, 0, -0.3}};
  frame.info = {{"name", "one water"}, {"temperature", "300"}};
  return frame;
}

TEST(Extxyz, ReadsWhatItWrites) {
  const ScratchFolder folder;
  XyzFrame crystal;
  crystal.configuration = face_centred_cubic(29, 3.61, 1);
  crystal.labels.virial = {1, 2, 3, 4, 5, 6, 7, 8, 9.25};
  write_file_atomically(folder / "a.xyz", format_xyz(water()) + format_xyz(crystal));
  const auto frames = read_xyz(folder / "a.xyz");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].configuration.positions, water().configuration.positions);
  EXPECT_EQ(frames[0].configuration.elements, water().configuration.elements);
  EXPECT_EQ(frames[0].labels.forces, water().labels.forces);
  EXPECT_EQ(frames[0].labels.energy, water().labels.energy);
  EXPECT_EQ(frames[0].info, water().info);
  EXPECT_FALSE(frames[0].configuration.cell.has_value());
  EXPECT_EQ(frames[1].configuration.cell, crystal.configuration.cell);
  EXPECT_EQ(frames[1].labels.virial, crystal.labels.virial);
  EXPECT_TRUE(frames[1].labels.forces.empty());
}

TEST(Extxyz, ReadsOtherColumnsNumbersAndPlainFiles) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a.xyz",
                        "1\r\nProperties=id:I:1:Z:I:1:force:R:3:pos:R:3 flag energy=+2.5 pbc=\"F F F\"\r\n"
                        "7 29 1 2 3 4 5 6\r\n\n2\nplain text = fine\nH 0 0 0\nO 1 2 3 extra words\n");
  const auto frames = read_xyz(folder / "a.xyz");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].configuration.elements, std::vector<int>{29});
  EXPECT_EQ(frames[0].configuration.positions[0], (Cartesian{4, 5, 6}));
  EXPECT_EQ(frames[0].labels.forces[0], (Cartesian{1, 2, 3}));
  EXPECT_EQ(frames[0].labels.energy, 2.5);
  EXPECT_EQ(frames[0].info.at("flag"), "T");
  EXPECT_EQ(frames[1].info.at("comment"), "plain text = fine");
  EXPECT_EQ(frames[1].configuration.positions[1], (Cartesian{1, 2, 3}));
}

TEST(Extxyz, RefusesWithFileAndLine) {
  const ScratchFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"x\n\n", "bad.xyz, line 1: a number of atoms should stand here, not 'x'"},
      {"2\n\nH 0 0 0\n", "line 4: the file ends where an atom should stand"},
      {"1\n\nH 0 0\n", "line 3: 3 words where an atom has 4"},
      {"1\n\nQq 0 0 0\n", "line 3: 'Qq' is no element"},
      {"1\n\nH 0 zero 0\n", "line 3: 'zero' is not a number"},
      {"1\n\nH 0 nan 0\n", "line 3: 'nan' is not a number"},
      {"1\nProperties=species:S:1\nH\n", "line 2: Properties has no pos:R:3"},
      {"1\nProperties=pos:R:3\n0 0 0\n", "line 2: Properties has neither species:S:1 nor Z:I:1"},
      {"1\nProperties=species:S\nH\n", "line 2: Properties is not a list of name:type:count"},
      {"1\nLattice=\"1 0 0\" Properties=species:S:1:pos:R:3\nH 0 0 0\n", "Lattice has 3 numbers, not 9"},
      {"-5\n\n", "not '-5'"},
      {"99999999999999999999\n\n", "a number of atoms should stand here"},
  };
  for (const auto& [text, message] : cases) {
    write_file_atomically(folder / "bad.xyz", text);
    expect_error(ErrorCode::bad_file, {message}, [&] { read_xyz(folder / "bad.xyz"); });
  }
  expect_error(ErrorCode::not_found, {"none.xyz"}, [&] { read_xyz(folder / "none.xyz"); });
}

TEST(Extxyz, DamagedFilesAreReadOrRefused) {
  const std::string text = format_xyz(water());
  const auto bytes = std::as_bytes(std::span(text));
  const Refusals refused = read_damaged({bytes.begin(), bytes.end()}, [](std::span<const std::byte> damaged) {
    const std::string copy(reinterpret_cast<const char*>(damaged.data()), damaged.size());
    XyzReader reader(std::make_unique<std::istringstream>(copy), "damaged");
    for (XyzFrame frame; reader.next(frame);) continue;
  });
  EXPECT_GT(refused.truncations, static_cast<int>(text.size() / 2));
  EXPECT_GT(refused.flips, static_cast<int>(text.size()));
}

TEST(DeepmdSet, ReadsWhatItWrites) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make_generator("deepmd", small);
  generator->write({folder / "system", 5, 70, &pool});
  generator->write({folder / "frames.h5", 5, 70, &pool});
  generator->write({folder / "frames.xyz", 5, 70, &pool});
  const auto system = read_deepmd_system(folder / "system");
  const auto xyz = read_xyz(folder / "frames.xyz");
  const Tensor energy = Hdf5File(folder / "frames.h5").read("energy", ElementType::f64);
  ASSERT_EQ(system.size(), 70u);
  ASSERT_EQ(xyz.size(), 70u);
  for (std::size_t i = 0; i < 70; ++i) {
    EXPECT_EQ(*system[i].labels.energy, energy.at(static_cast<std::int64_t>(i)));
    EXPECT_EQ(*system[i].labels.energy, *xyz[i].labels.energy);
    EXPECT_EQ(system[i].labels.forces, xyz[i].labels.forces);
    EXPECT_EQ(system[i].labels.virial, xyz[i].labels.virial);
    EXPECT_EQ(system[i].configuration.positions, xyz[i].configuration.positions);
    EXPECT_EQ(system[i].configuration.cell, xyz[i].configuration.cell);
    EXPECT_EQ(system[i].configuration.elements, (std::vector<int>{29, 29, 29, 29}));
  }
  EXPECT_EQ(folder.file_count(), 3);
}

// A system as people write it by hand: two molecules of water, f32, energies as a column, several sets.
void write_by_hand(const std::filesystem::path& folder, const std::string& types, const std::string& names,
                   std::vector<int> frames_of_sets, bool mixed) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "type.raw", types);
  write_file_atomically(folder / "type_map.raw", names);
  for (std::size_t set = 0; set < frames_of_sets.size(); ++set) {
    const auto at = folder / ("set.00" + std::to_string(set));
    std::filesystem::create_directories(at);
    const std::int64_t frames = frames_of_sets[set];
    Tensor coord(ElementType::f32, {frames, 18}), force(ElementType::f32, {frames, 18});
    for (std::int64_t i = 0; i < coord.element_count(); ++i) coord.set(i, 0.5 * i), force.set(i, 0.25 * i);
    write_npy(at / "coord.npy", coord);
    write_npy(at / "force.npy", force);
    write_npy(at / "box.npy", Tensor::full(ElementType::f32, {frames, 9}, 8));
    write_npy(at / "energy.npy", Tensor::full(ElementType::f32, {frames, 1}, -9.5));
    if (mixed) {
      Tensor real(ElementType::i32, {frames, 6});
      for (std::int64_t i = 0; i < real.element_count(); ++i) real.set(i, i % 3 == 0 ? 2 : 0);
      write_npy(at / "real_atom_types.npy", real);
    }
  }
}

// Each system has a map of its own, which may name elements that it does not have; a mixed one says in each
// set what its atoms are.
TEST(DeepmdSet, ReadsSeveralSystemsMadeByHand) {
  const ScratchFolder folder;
  write_by_hand(folder / "all/a", "0\n1\n1\n0\n1\n1\n", "O\nH\n", {2, 1}, false);
  write_by_hand(folder / "all/deeper/b", "2 0 0 2 0 0", "H C O", {1}, false);
  write_by_hand(folder / "all/mixed", "0\n0\n0\n0\n0\n0\n", "H\nC\nO\n", {2}, true);
  const LabelledFrames read = read_labelled_frames(folder / "all");
  ASSERT_EQ(read.frames.size(), 6u);
  for (const DeepmdFrame& frame : read.frames) {
    EXPECT_EQ(frame.configuration.elements, (std::vector<int>{8, 1, 1, 8, 1, 1}));
    EXPECT_EQ(*frame.labels.energy, -9.5);
    EXPECT_FALSE(frame.labels.virial.has_value());
  }
  // The second frame of the first set, and the first of the second.
  EXPECT_EQ(read.frames[1].configuration.positions[0], (Cartesian{9, 9.5, 10}));
  EXPECT_EQ(read.frames[2].configuration.positions[1], (Cartesian{1.5, 2, 2.5}));
  EXPECT_EQ(read.frames[1].labels.forces[5], (Cartesian{8.25, 8.5, 8.75}));
  EXPECT_EQ(read.frames[0].configuration.cell->a, (Cartesian{8, 8, 8}));
  EXPECT_EQ(read.place[2], (folder / "all/a").string() + ", frame 3");
  EXPECT_EQ(read.place[3], (folder / "all/deeper/b").string() + ", frame 1");
  EXPECT_EQ(read_labelled_frames(folder / "all", 4).frames.size(), 4u);
}

TEST(DeepmdSet, RefusesWithTheFile) {
  const ScratchFolder folder;
  ThreadPool pool(1);
  make_generator("deepmd", small)->write({folder / "system", 5, 3, &pool});
  const auto refused = [&](std::initializer_list<std::string> parts, ErrorCode code = ErrorCode::bad_file) {
    expect_error(code, parts, [&] { read_deepmd_system(folder / "system"); });
  };
  const auto folder_path = folder / "system";
  write_npy(folder_path / "set.000" / "energy.npy", Tensor(ElementType::f64, {2}));
  refused({"energy.npy", "has shape [2], not [3,1]"});
  std::filesystem::remove(folder_path / "set.000" / "energy.npy");
  EXPECT_FALSE(read_deepmd_system(folder_path)[0].labels.energy.has_value());
  write_file_atomically(folder_path / "type.raw", std::string_view("0 0 0 7\n"));
  refused({"type 7 is not in type_map.raw"});
  write_file_atomically(folder_path / "type.raw", std::string_view("0 0 0 x\n"));
  refused({"type.raw", "'x' is not the number of a type"});
  write_file_atomically(folder_path / "type.raw", std::string_view("0 0 0 0\n"));
  std::filesystem::remove(folder_path / "set.000" / "box.npy");
  refused({"neither box.npy nor nopbc"}, ErrorCode::not_found);
  std::filesystem::remove_all(folder_path / "set.000");
  refused({"there is no set.000"}, ErrorCode::not_found);
  expect_error(ErrorCode::invalid_argument, {"is there already"}, [&] {
    make_generator("deepmd", small)->write({folder_path, 5, 3, &pool});
  });
}

TEST(MetalGenerator, SamplesDoNotDependOnThreads) { expect_same_bits_on_any_threads("deepmd", 70, small); }

TEST(MetalGenerator, HotterTrajectoriesHaveHigherEnergy) {
  ThreadPool pool(2);
  const auto cold =
      make_generator("deepmd", {"cells=2", "low=100", "high=101", "volume-change=0", "cutoff=1.5"});
  const auto hot =
      make_generator("deepmd", {"cells=2", "low=800", "high=801", "volume-change=0", "cutoff=1.5"});
  const auto energy = [&](const Generator& generator) {
    return mean(field(generator, generate_in_memory(generator, 1, 0, 8, pool), "energy")) / 32;
  };
  // Equipartition of a harmonic crystal: 3/2 k T an atom in the potential energy.
  EXPECT_NEAR(energy(*hot) - energy(*cold), 1.5 * 8.617e-5 * 700, 0.02);
}

TEST(MetalGenerator, AlloysAndPairPotentialsHaveTheirTypes) {
  std::vector<std::string> alloy = small;
  alloy.insert(alloy.end(), {"metal=NiCu", "nickel=0.25"});
  expect_same_bits_on_any_threads("deepmd", 70, alloy);
  const ScratchFolder folder;
  ThreadPool pool(2);
  make_generator("deepmd", alloy)->write({folder / "system", 5, 40, &pool});
  const auto frames = read_deepmd_system(folder / "system");
  ASSERT_EQ(frames.size(), 40u);
  EXPECT_EQ(frames[0].configuration.elements, (std::vector<int>{28, 29, 29, 29}));
  // On random sites: the nickel atom begins near different corners of the cell.
  std::set<std::array<int, 3>> corners;
  for (const DeepmdFrame& frame : frames) {
    const Cartesian p = frame.configuration.positions[0];
    const double edge = frame.configuration.cell->a.x;
    corners.insert({static_cast<int>(std::lround(2 * p.x / edge)),
                    static_cast<int>(std::lround(2 * p.y / edge)),
                    static_cast<int>(std::lround(2 * p.z / edge))});
  }
  EXPECT_GT(corners.size(), 1u);
  std::vector<std::string> argon = small;
  argon.push_back("metal=Ar");
  const auto generator = make_generator("deepmd", argon);
  const Tensor kelvin = field(*generator, generate_in_memory(*generator, 1, 0, 8, pool), "temperature");
  for (std::int64_t i = 0; i < kelvin.element_count(); ++i)
    EXPECT_TRUE(kelvin.at(i) >= 10 && kelvin.at(i) <= 80) << kelvin.at(i);
}

TEST(MetalGenerator, OpensInAse) {
  const std::string python = python_with("ase, numpy");
  if (python.empty())
    GTEST_SKIP() << "no Python with the packages ase, numpy was found: tools/setup-oracles installs them";
  const ScratchFolder folder;
  ThreadPool pool(1);
  const auto generator = make_generator("deepmd", small);
  generator->write({folder / "frames.xyz", 5, 4, &pool});
  generator->write({folder / "system", 5, 4, &pool});
  const std::string script = "folder = '" + (folder / "").string() + R"('
import ase.io, numpy as np
frames = ase.io.read(folder + '/frames.xyz', ':')
coord = np.load(folder + '/system/set.000/coord.npy')
force = np.load(folder + '/system/set.000/force.npy')
energy = np.load(folder + '/system/set.000/energy.npy')
box = np.load(folder + '/system/set.000/box.npy')
virial = np.load(folder + '/system/set.000/virial.npy')
print(len(frames), coord.shape[0], coord.shape[1], coord.dtype)
for i, atoms in enumerate(frames):
    assert np.array_equal(atoms.positions.ravel(), coord[i])
    assert np.array_equal(atoms.get_forces().ravel(), force[i])
    assert atoms.get_potential_energy() == energy[i]
    assert np.array_equal(np.array(atoms.cell).ravel(), box[i]) and atoms.pbc.all()
    assert atoms.get_chemical_formula() == 'Cu4'
    assert np.allclose(np.array(atoms.info['virial']).ravel(), virial[i])
)";
  EXPECT_EQ(python_output(python, folder, script).value_or("failed"), "4 4 12 float64\n");
}

}  // namespace
}  // namespace superstep::data
