// Twenty steps on files as the ecosystem's own tools write them give the bits of the same arrays as npz; what
// files say about training, patients, classes and broken samples is heeded.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "superstep/file/source/forms.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/user/arrays.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/python.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace on = onnx::testing;
using test::expect_same_states;
using test::newest_checkpoint;

constexpr std::int64_t pictures = 60, side = 32;

constexpr const char* arrays = R"(
import io, json, os
import numpy as np
from PIL import Image
rng = np.random.default_rng(7)
picture = rng.integers(0, 256, (60, 3, 32, 32), dtype=np.uint8)
mask = (rng.random((60, 32, 32)) < 0.2).astype(np.uint8)
label = rng.integers(0, 10, 60)
patient = np.arange(60) // 7
x = rng.standard_normal((60, 4)).astype(np.float32)
target = rng.standard_normal((60, 3)).astype(np.float32)
np.savez('arrays.npz', picture=picture, mask=mask, label=label, patient=patient, x=x, target=target)
np.savez('pairs.npz', x=x, target=target)
np.savez('pictures.npz', image=picture, label=label)
def rgb(i): return Image.fromarray(picture[i].transpose(1, 2, 0))
def png(i):
    held = io.BytesIO()
    rgb(i).save(held, 'png')
    return held.getvalue()
)";

constexpr const char* writes_folders = R"(
for i in range(60):
    for place in [f'classes/{label[i]}', f'split/{"train" if i < 40 else "val"}/{label[i]}', 'alone']:
        os.makedirs(place, exist_ok=True)
        rgb(i).save(f'{place}/p_{i:03d}.png')
    place = f'kaggle_3m/TCGA_{patient[i]}'
    os.makedirs(place, exist_ok=True)
    rgb(i).save(f'{place}/p_{i:03d}.tif')
    Image.fromarray(mask[i] * 255).save(f'{place}/p_{i:03d}_mask.tif')
)";

constexpr const char* writes_tar = R"(
import webdataset
for shard in range(3):
    with webdataset.TarWriter(f'pictures-{shard}.tar') as archive:
        for i in range(20 * shard, 20 * shard + 20): archive.write({'__key__': f'{i:06d}', 'png': png(i), 'cls': int(label[i])})
for name in ['pairs.tar', 'pairs.tar.gz']:
    with webdataset.TarWriter(name, compress=name.endswith('gz')) as archive:
        for i in range(60): archive.write({'__key__': f'{i:06d}', 'x.npy': x[i], 'target.npy': target[i]})
)";

// By Google's protocol buffers, of the messages as TensorFlow's example.proto and feature.proto declare them.
constexpr const char* writes_tfrecord = R"(
import struct
import crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
file = descriptor_pb2.FileDescriptorProto(name='e.proto', package='t', syntax='proto3')
def message(name, *fields, parent=None):
    made = (parent.nested_type if parent else file.message_type).add(name=name)
    for number, (field, kind, repeated) in enumerate(fields, 1):
        each = made.field.add(name=field, number=number, label=3 if repeated else 1)
        if isinstance(kind, int): each.type = kind
        else: each.type, each.type_name = 11, kind
    return made
message('BytesList', ('value', 12, True))
message('FloatList', ('value', 2, True))
message('Int64List', ('value', 3, True))
message('Feature', ('bytes_list', '.t.BytesList', False), ('float_list', '.t.FloatList', False), ('int64_list', '.t.Int64List', False))
features = message('Features', ('feature', '.t.Features.FeatureEntry', True))
entry = message('FeatureEntry', ('key', 9, False), ('value', '.t.Feature', False), parent=features)
entry.options.map_entry = True
message('Example', ('features', '.t.Features', False))
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Example = message_factory.GetMessageClass(pool.FindMessageTypeByName('t.Example'))
def masked(data):
    sum = crc32c.crc32c(data)
    return struct.pack('<I', ((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff)
def write(name, put):
    with open(name, 'wb') as out:
        for i in range(60):
            example = Example()
            put(example.features.feature, i)
            data = example.SerializeToString()
            length = struct.pack('<Q', len(data))
            out.write(length + masked(length) + data + masked(data))
def put_picture(feature, i):
    feature['image/encoded'].bytes_list.value.append(png(i))
    feature['image/class/label'].int64_list.value.append(int(label[i]))
def put_pair(feature, i):
    feature['x'].float_list.value.extend(x[i].tolist())
    feature['target'].float_list.value.extend(target[i].tolist())
write('pictures.tfrecord', put_picture)
write('pairs.tfrecord', put_pair)
)";

constexpr const char* writes_tables = R"(
import h5py
import pandas
with open('pairs.jsonl', 'w') as out:
    for i in range(60): out.write(json.dumps({'x': x[i].tolist(), 'target': target[i].tolist()}) + '\n')
columns = {f'x{k}': x[:, k] for k in range(4)} | {f'target_{k + 1}': target[:, k] for k in range(3)}
pandas.DataFrame(columns).to_csv('pairs.csv', index=False)
pandas.DataFrame(columns).to_csv('pairs.csv.gz', index=False)
pandas.DataFrame(columns).to_csv('pairs.tsv', index=False, sep='\t', lineterminator='\r\n')
pandas.DataFrame(columns).to_csv('semicolons.csv', index=False, sep=';')
measured = {name: x[:, k] for k, name in enumerate(['pH', 'T', 'p', 'flow'])} | {f'target{k}': target[:, k] for k in range(3)}
pandas.DataFrame(measured).to_csv('measured.csv', index=False)
with h5py.File('pairs.h5', 'w') as file:
    file.create_dataset('x', data=x, chunks=(7, 4), compression='gzip', shuffle=True)
    file['target'] = target
for part in range(3):
    np.savez_compressed(f'part-{part}.npz', x=x[20 * part:20 * part + 20], target=target[20 * part:20 * part + 20])
open('list.txt', 'w').write('# parts\n' + ''.join(f'part-{part}.npz\n' for part in range(3)))
)";

class FormsOfData : public testing::Test {
 protected:
  void write(const std::string& packages, const std::string& script, const std::string& imports = "") {
    const std::string python = python_with(packages);
    if (python.empty()) GTEST_SKIP() << packages << " are not installed: tools/setup-oracles installs them";
    ASSERT_TRUE(run_python(python, folder / ".", imports + "\n" + arrays + script));
    written = read_arrays(folder / "arrays.npz");
    const on::GraphParts parts{.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
                               .inputs = {on::port("x", on::f32, {"N", "4"})},
                               .outputs = {on::port("y", on::f32, {"N", "3"})},
                               .initializers = {on::floats("A", {4, 3}, std::vector<float>(12, 0.5f))}};
    std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
  }

  TrainSettings own(const std::string& data) const {
    return {.workload = (folder / "model.onnx").string(),
            .data = folder / data,
            .batch = 8,
            .replicas = 2,
            .epochs = 5,
            .steps = 20,
            .learning_rate = 0.01};
  }
  TrainSettings classifier(const std::string& data) const {
    return {.workload = "cifar10-cnn",
            .data = folder / data,
            .batch = 8,
            .replicas = 2,
            .epochs = 5,
            .steps = 20};
  }
  TrainSettings unet(const std::string& data) const {
    return {.workload = "unet-64",
            .model_options = {"size=32", "width=4", "levels=2"},
            .data = folder / data,
            .batch = 8,
            .replicas = 2,
            .epochs = 5,
            .steps = 20};
  }

  // From memory, and read as it goes by several threads: what both end with.
  Checkpoint trained(const TrainSettings& settings) {
    const std::string out = "run-" + std::to_string(runs_++);
    train(settings, {.out = folder / out, .data_memory = 1e9});
    train(settings, {.out = folder / (out + "b"), .data_memory = 1, .data_threads = 3});
    const Checkpoint held = newest_checkpoint(folder / out), read = newest_checkpoint(folder / (out + "b"));
    EXPECT_EQ(held.step, 20);
    expect_same_states(held, read);
    return held;
  }

  // The number that the name of a row's picture has.
  static std::int64_t number_of(const data::SampleSource& source, std::int64_t row) {
    const std::string path = source.place(0, row);
    return std::stoll(path.substr(path.find("p_") + 2, 3));
  }
  // Arrays in the order of a source, in a file.
  std::string in_order(const data::SampleSource& source, const std::map<std::string, std::string>& names) {
    NamedTensors sorted;
    for (const auto& [name, from] : names) {
      const Tensor& all = written.at(from);
      const std::size_t row = all.byte_count() / static_cast<std::size_t>(pictures);
      Tensor& to = sorted.emplace(name, Tensor(all.type(), all.shape())).first->second;
      for (std::int64_t i = 0; i < pictures; ++i)
        std::memcpy(to.bytes() + static_cast<std::size_t>(i) * row,
                    all.bytes() + static_cast<std::size_t>(number_of(source, i)) * row, row);
    }
    write_arrays(folder / "sorted.npz", sorted);
    return "sorted.npz";
  }

  const ScratchFolder folder;
  NamedTensors written;

 private:
  int runs_ = 0;
};

data::SourceRequest wanted_pictures() {
  return {.wanted = {{.name = "image", .type = ElementType::u8, .row = Shape{3, side, side}},
                     {.name = "label", .type = ElementType::i64, .row = Shape{}}}};
}

TEST_F(FormsOfData, AFolderOfPicturesAClass) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  const auto source = data::open_source(folder / "classes", wanted_pictures());
  const std::string npz = in_order(*source, {{"image", "picture"}, {"label", "label"}});
  expect_same_states(trained(classifier("classes")), trained(classifier(npz)));
}

TEST_F(FormsOfData, PicturesWithMasksByPatient) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  const auto source =
      data::open_source(folder / "kaggle_3m",
                        {.wanted = {{.name = "image", .type = ElementType::u8, .row = Shape{3, side, side}},
                                    {.name = "mask", .type = ElementType::u8, .row = Shape{side, side}}}});
  const std::string npz = in_order(*source, {{"image", "picture"}, {"mask", "mask"}, {"patient", "patient"}});
  expect_same_states(trained(unet("kaggle_3m")), trained(unet(npz)));
}

TEST_F(FormsOfData, WebDataSetsInShards) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, webdataset", writes_tar));
  if (IsSkipped()) return;
  expect_same_states(trained(classifier("pictures-{0..2}.tar")), trained(classifier("pictures.npz")));
  expect_same_states(trained(own("pairs.tar")), trained(own("pairs.npz")));
  expect_same_states(trained(own("pairs.tar.gz")), trained(own("pairs.npz")));
}

TEST_F(FormsOfData, TfRecords) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, crc32c, google.protobuf", writes_tfrecord));
  if (IsSkipped()) return;
  expect_same_states(trained(classifier("pictures.tfrecord")), trained(classifier("pictures.npz")));
  expect_same_states(trained(own("pairs.tfrecord")), trained(own("pairs.npz")));
}

TEST_F(FormsOfData, ParquetAndArrow) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, pyarrow", R"(
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.feather as feather, pyarrow.ipc as ipc
lists = pa.table({'x': pa.array(x.tolist(), pa.list_(pa.float32())), 'target': pa.array(target.tolist(), pa.list_(pa.float32()))})
columns = pa.table({f'x{k}': x[:, k] for k in range(4)} | {f'target_{k + 1}': target[:, k] for k in range(3)})
pictures = pa.table({'image': pa.array([{'bytes': png(i), 'path': None} for i in range(60)], pa.struct([('bytes', pa.binary()), ('path', pa.string())])),
                     'label': pa.array([int(each) for each in label])})
for name, table in [('lists', lists), ('columns', columns), ('pictures', pictures)]:
    pq.write_table(table, name + '.parquet', row_group_size=23)
    feather.write_feather(table, name + '.feather')
    with ipc.new_stream(name + '.arrow', table.schema) as out: out.write_table(table, max_chunksize=23)
)"));
  if (IsSkipped()) return;
  const Checkpoint pairs = trained(own("pairs.npz")), pictures = trained(classifier("pictures.npz"));
  for (const std::string ending : {".parquet", ".feather", ".arrow"}) {
    SCOPED_TRACE(ending);
    expect_same_states(trained(own("lists" + ending)), pairs);
    expect_same_states(trained(own("columns" + ending)), pairs);
    expect_same_states(trained(classifier("pictures" + ending)), pictures);
  }
}

TEST_F(FormsOfData, TablesLinesAndArrays) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, pandas, h5py", writes_tables));
  if (IsSkipped()) return;
  const Checkpoint expected = trained(own("pairs.npz"));
  for (const char* name : {"pairs.jsonl", "pairs.csv", "pairs.csv.gz", "pairs.tsv", "semicolons.csv",
                           "measured.csv", "pairs.h5", "part-?.npz", "part-{0..2}.npz", "@list.txt"}) {
    SCOPED_TRACE(name);
    const std::string given = name[0] == '@' ? "list.txt" : name;
    TrainSettings settings = own(given);
    if (name[0] == '@') settings.data = "@" + (folder / given).string();
    expect_same_states(trained(settings), expected);
  }
}

TEST_F(FormsOfData, StoresOfZarr) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, zarr", R"(
for version in [2, 3]:
    store = zarr.open_group(f'pairs-{version}.zarr', mode='w', zarr_format=version)
    for name, values in [('x', x), ('target', target)]:
        store.create_array(name, shape=values.shape, chunks=(7, values.shape[1]), dtype='f4')[...] = values
)",
                                "import zarr"));
  if (IsSkipped()) return;
  const Checkpoint expected = trained(own("pairs.npz"));
  for (const char* name : {"pairs-2.zarr", "pairs-3.zarr"}) expect_same_states(trained(own(name)), expected);
}

TEST_F(FormsOfData, DatabasesOfLmdb) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, lmdb", R"(
def npz(**arrays):
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()
def put(name, value):
    with lmdb.open(name, subdir=name.startswith('folder'), map_size=1 << 24) as base, base.begin(write=True) as out:
        for i in range(60): out.put(str(i).encode(), value(i))
        out.put(b'length', b'60')
put('pairs.mdb', lambda i: npz(x=x[i], target=target[i]))
put('folder-of-pairs', lambda i: zlib.compress(json.dumps({'x': x[i].tolist(), 'target': target[i].tolist()}).encode()))
put('pickled.mdb', lambda i: pickle.dumps({'x': x[i], 'target': target[i]}))
)",
                                "import lmdb, pickle, zlib"));
  if (IsSkipped()) return;
  const Checkpoint expected = trained(own("pairs.npz"));
  for (const char* name : {"pairs.mdb", "folder-of-pairs"}) expect_same_states(trained(own(name)), expected);
  expect_error(ErrorCode::unsupported, {"pickled.mdb: key '0'", "a pickle of Python"},
               [&] { train(own("pickled.mdb"), {}); });
}

// The table that the refusal of a file of ROOT says how to make is read as the arrays are.
TEST_F(FormsOfData, TreesOfRootByWayOfTheCommandThatIsNamed) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, uproot, awkward", R"(
with uproot.recreate('pairs.root') as file:
    file['pairs'] = {'x': x, 'target': target}
)",
                                "import awkward, uproot"));
  if (IsSkipped()) return;
  std::string hint;
  try {
    train(own("pairs.root"), {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    hint = error.hint();
  }
  const std::size_t begin = hint.find("-c \"");
  ASSERT_NE(begin, std::string::npos) << hint;
  std::string script = hint.substr(begin + 4, hint.rfind('"') - begin - 4);
  script.replace(script.find(":TREE"), 5, ":pairs");
  ASSERT_TRUE(run_python(python_with("uproot, awkward"), folder / ".", script)) << script;
  expect_same_states(trained(own("TREE.parquet")), trained(own("pairs.npz")));
}

// Frames, volumes and pages are pictures of a model of one's own.
TEST_F(FormsOfData, FramesVolumesAndPages) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, fabio, nibabel, tifffile", R"(
frames = rng.integers(0, 60000, (60, 4, 4)).astype(np.int32)
np.savez('frames.npz', x=frames[:, None].astype(np.float32), target=target)
np.save('target.npy', target)
for name, image in [('edf', fabio.edfimage.EdfImage), ('cbf', fabio.cbfimage.CbfImage)]:
    os.makedirs(name)
    for i in range(60): image(data=frames[i]).write(f'{name}/frame_{i:04d}.{name}')
nibabel.save(nibabel.Nifti1Image(frames.transpose(2, 1, 0)[:, :, None, :], np.eye(4)), 'frames.nii.gz')
tifffile.imwrite('frames.tif', frames, photometric='minisblack')
)",
                                "import fabio, fabio.edfimage, fabio.cbfimage, nibabel, tifffile"));
  if (IsSkipped()) return;
  const on::GraphParts parts{
      .nodes = {on::node("Flatten", {"x"}, {"flat"}), on::node("MatMul", {"flat", "A"}, {"y"})},
      .inputs = {on::port("x", on::f32, {"N", "1", "4", "4"})},
      .outputs = {on::port("y", on::f32, {"N", "3"})},
      .initializers = {on::floats("A", {16, 3}, std::vector<float>(48, 1e-6f))}};
  std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
  TrainSettings settings = own("frames.npz");
  settings.learning_rate = 1e-12;
  const Checkpoint expected = trained(settings);
  for (const char* name : {"edf", "cbf", "frames.nii.gz", "frames.tif"}) {
    SCOPED_TRACE(name);
    settings.data = "x=" + (folder / name).string() + ",target=" + (folder / "target.npy").string();
    expect_same_states(trained(settings), expected);
  }
}

// Molecules as ASE writes them, in each of its forms.
TEST_F(FormsOfData, MoleculesOfAse) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, ase.io, ase.db, lmdb", R"(
water = np.array([[0, 0, 0], [0.76, 0.59, 0], [-0.76, 0.59, 0]])
frames = []
for i in range(40):
    positions = np.concatenate([water, water + [0, 0, 2.9]]) + rng.normal(size=(6, 3)) * 0.05
    atoms = Atoms('OH2OH2', positions=positions.round(6))
    energy, forces = round(float(rng.normal()), 6), rng.normal(size=(6, 3)).round(6)
    atoms.calc = SinglePointCalculator(atoms, energy=energy, forces=forces)
    frames.append((atoms, energy, forces))
ase.io.write('frames.xyz', [atoms for atoms, _, _ in frames], format='extxyz')
base = ase.db.connect('frames.db')
for atoms, _, _ in frames: base.write(atoms)
def packed(array, kind): return {'__ndarray__': [list(array.shape), kind, array.ravel().tolist()]}
with lmdb.open('frames.aselmdb', subdir=False, map_size=1 << 24) as rows, rows.begin(write=True) as out:
    for i, (atoms, energy, forces) in enumerate(frames):
        row = {'numbers': packed(atoms.numbers, 'int64'), 'positions': packed(atoms.positions, 'float64'), 'energy': energy,
               'forces': packed(forces, 'float64'), 'pbc': packed(atoms.pbc, 'bool'), 'cell': packed(np.array(atoms.cell), 'float64')}
        out.put(str(i + 1).encode(), zlib.compress(json.dumps(row).encode()))
    out.put(b'nextid', str(len(frames) + 1).encode())
)",
                                "import ase.db, ase.io, lmdb, zlib\nfrom ase import Atoms\nfrom "
                                "ase.calculators.singlepoint import SinglePointCalculator"));
  if (IsSkipped()) return;
  const auto run = [&](const char* data) {
    const std::string out = std::string("of-") + data;
    train({.workload = "schnet", .data = folder / data, .batch = 4, .replicas = 2, .epochs = 5, .steps = 20},
          {.out = folder / out});
    return newest_checkpoint(folder / out);
  };
  const Checkpoint expected = run("frames.xyz");
  expect_same_states(run("frames.db"), expected);
  expect_same_states(run("frames.aselmdb"), expected);
}

// What folders train/ and val/ say is done: nothing of val/ is trained on, and nothing of train/ judged.
TEST_F(FormsOfData, FoldersThatSayWhatTrains) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  ThreadPool pool(1);
  const Model zoo(classifier("split"));
  const auto task = zoo.open_task({.data = folder / "split", .seed = 1, .pool = &pool});
  EXPECT_EQ(task->size(), pictures);
  EXPECT_EQ(task->training_count(), 40);
  const auto source = data::open_source(folder / "split", wanted_pictures());
  for (std::int64_t row = 0; row < pictures; ++row)
    EXPECT_EQ(number_of(*source, row) < 40, row < task->training_count()) << row;
  TrainSettings few = classifier("split");
  few.samples = 20;
  few.steps = 2;
  std::vector<std::string> said;
  train(few, {.tell = [&](const std::string& line) { said.push_back(line); }});
  EXPECT_TRUE(std::ranges::any_of(said, [](const std::string& line) {
    return line.find("none is left to validate on") != std::string::npos;
  }));
}

// Patients of two sites are others, however each numbers its own; what trains comes first.
TEST_F(FormsOfData, SeveralFoldersAreOne) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", std::string(writes_folders) + R"(
import shutil
for site in 'ab':
    shutil.copytree('kaggle_3m', f'site-{site}')
    shutil.copytree('split', f'split-{site}')
)"));
  if (IsSkipped()) return;
  const auto source = data::open_source(folder / "site-{a,b}", {});
  ASSERT_TRUE(source->group());
  const Tensor patients = data::read_whole(*source, *source->group());
  ASSERT_EQ(patients.element_count(), 2 * pictures);
  for (std::int64_t i = 1; i < patients.element_count(); ++i) {
    EXPECT_GE(patients.at(i), patients.at(i - 1)) << i;
    EXPECT_LE(patients.at(i), patients.at(i - 1) + 1) << i;
  }
  EXPECT_EQ(patients.at(2 * pictures - 1), 17) << "nine of each site";
  const auto split = data::open_source(folder / "split-{a,b}", {});
  EXPECT_EQ(split->training_rows(), 80);
  for (std::int64_t row = 0; row < 2 * pictures; ++row)
    EXPECT_EQ(split->place(0, row).find("/train/") != std::string::npos, row < 80) << row;
  expect_error(ErrorCode::bad_file, {"classes", "does not say which samples train"},
               [&] { data::open_source(folder / "{split-a,classes}", {}); });
}

// The cut of a user's own model lies between patients, too.
TEST_F(FormsOfData, NoPatientIsCutInTwo) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  const auto source = data::open_source(folder / "kaggle_3m", {});
  const Tensor patients = data::read_whole(*source, *source->group());
  for (const double share : {0.1, 0.33, 0.5, 0.8, 0.95}) {
    const std::int64_t cut = data::training_rows(*source, pictures, share);
    EXPECT_LE(static_cast<double>(cut), share * pictures);
    EXPECT_GT(cut, 0);
    if (share > 0.2) {
      EXPECT_NE(patients.at(cut - 1), patients.at(cut)) << share;
    }
  }
}

// More classes than the model tells apart are refused before a picture is read, fewer told; numbers beyond a
// byte are numbers.
TEST_F(FormsOfData, ClassesThatDoNotFit) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  ThreadPool pool(1);
  const auto opened = [&](const std::string& data, std::vector<std::string> options, double memory = 1e9) {
    options.push_back("size=32");
    const Model model({.workload = "resnet50", .model_options = options});
    return model.open_task({.data = folder / data,
                            .seed = 1,
                            .model_options = model.settings().model_options,
                            .pool = &pool,
                            .data_memory = memory});
  };
  expect_error(ErrorCode::bad_file, {"has 10 classes, the model tells 4 apart", "--set classes=10"},
               [&] { opened("classes", {"classes=4"}); });
  const auto notes = opened("classes", {"classes=1000"})->notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(contains(notes[0], "--set classes=10")) << notes[0];
  NamedTensors arrays{{"image", written.at("picture")}, {"label", written.at("label")}};
  arrays.at("label").set(7, 700);
  write_arrays(folder / "large.npz", arrays);
  EXPECT_EQ(opened("large.npz", {"classes=1000"})->size(), pictures);
  expect_error(ErrorCode::bad_file, {"large.npz", "the class of sample 7 is 700", "--set classes=701"},
               [&] { opened("large.npz", {"classes=10"}); });
  // Read as it goes, when it is read.
  const auto task = opened("large.npz", {"classes=10"}, 1);
  std::vector<Tensor> batch{Tensor(ElementType::f32, {1, 3, side, side}), Tensor(ElementType::i64, {1})};
  const std::int64_t seven[] = {7};
  expect_error(ErrorCode::bad_file, {"large.npz", "the class of sample 7 is 700"},
               [&] { task->fill(seven, 0, false, batch); });
  arrays.at("label").set(7, -1);
  write_arrays(folder / "large.npz", arrays);
  expect_error(ErrorCode::bad_file, {"the class of sample 7 is -1", "from 0 on"},
               [&] { opened("large.npz", {"classes=10"}); });
}

// A classifier of one's own takes a folder: pictures in its size, as shares of white, and classes by number.
TEST_F(FormsOfData, PicturesForAModelOfOnesOwn) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  const on::GraphParts parts{
      .nodes = {on::node("Flatten", {"photo"}, {"flat"}), on::node("MatMul", {"flat", "A"}, {"scores"})},
      .inputs = {on::port("photo", on::f32, {"N", "3", "32", "32"})},
      .outputs = {on::port("scores", on::f32, {"N", "10"})},
      .initializers = {on::floats("A", {3072, 10}, std::vector<float>(30720, 0.001f))}};
  std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
  const auto source = data::open_source(folder / "classes", wanted_pictures());
  Tensor shares = written.at("picture").converted(ElementType::f32);
  for (float& value : shares.as<float>()) value /= 255.0f;
  written.insert_or_assign("share", shares);
  const std::string npz = in_order(*source, {{"photo", "share"}, {"target", "label"}});
  TrainSettings settings = own("classes");
  settings.loss = "cross_entropy";
  const Checkpoint found = trained(settings);
  settings.data = folder / npz;
  expect_same_states(found, trained(settings));
  // Served, pictures need no class.
  const InferReport report = infer({.workload = settings.workload,
                                    .weights = folder / "run-0",
                                    .input = folder / "alone",
                                    .output = folder / "scores.npz"});
  EXPECT_EQ(report.samples, pictures);
}

TEST_F(FormsOfData, BrokenSamplesAreLeftOutWhereThatIsAsked) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL", writes_folders));
  if (IsSkipped()) return;
  const std::string broken = (folder / "classes/0/broken.png").string();
  std::ofstream(broken) << "no picture";
  TrainSettings settings = classifier("classes");
  expect_error(ErrorCode::bad_file, {"broken.png", "--skip-broken"}, [&] { train(settings, {}); });
  settings.skip_broken = true;
  std::vector<std::string> said;
  const auto tell = [&](const std::string& line) { said.push_back(line); };
  train(settings, {.out = folder / "skipped", .tell = tell});
  EXPECT_EQ(std::ranges::count_if(said, [](const std::string& line) { return contains(line, "broken.png"); }),
            1);
  // It is the run's, which goes on with the same samples.
  EXPECT_TRUE(train_settings_from_json(RunDirectory::open(folder / "skipped").config()).skip_broken);
}

}  // namespace
}  // namespace superstep::run
