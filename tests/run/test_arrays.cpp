// Arrays of users: in and out of every format, to the bit, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/run/user/arrays.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

Tensor array_of(ElementType type, const Shape& shape, std::uint64_t seed) {
  Tensor tensor(type, shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_floating(type) ? random.uniform(-4, 4) : static_cast<double>(random.below(100)));
  return tensor;
}

void expect_same_array(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.byte_count()), 0);
}

TEST(Arrays, ComeBackFromEveryFormat) {
  const ScratchFolder folder;
  const NamedTensors arrays{{"x", array_of(ElementType::f32, {3, 4}, 1)},
                            {"labels", array_of(ElementType::i64, {5}, 2)},
                            {"wide", array_of(ElementType::f64, {2, 1, 3}, 3)},
                            {"bytes", array_of(ElementType::u8, {7}, 4)}};
  for (const char* name : {"a.npz", "a.h5", "a.hdf5", "a.safetensors"}) {
    SCOPED_TRACE(name);
    write_arrays(folder / name, arrays);
    const NamedTensors found = read_arrays(folder / name);
    ASSERT_EQ(found.size(), arrays.size());
    for (const auto& [array, tensor] : arrays) expect_same_array(found.at(array), tensor);
  }
}

TEST(Arrays, AnNpyFileHoldsOneWithoutAName) {
  const ScratchFolder folder;
  const Tensor x = array_of(ElementType::f32, {3, 2}, 5);
  write_arrays(folder / "x.npy", {{"x", x}});
  const NamedTensors found = read_arrays(folder / "x.npy");
  ASSERT_EQ(found.size(), 1U);
  expect_same_array(found.at(""), x);
  for (const std::size_t count : {0, 2})
    expect_error(ErrorCode::invalid_argument, {"holds one array", "use .npz or .h5"},
                 [&] { check_array_file(folder / "x.npy", count); });
  EXPECT_NO_THROW(check_array_file(folder / "x.npy", 1));
  EXPECT_NO_THROW(check_array_file(folder / "x.npz", 2));
}

// Whatever a file is called, its bytes say what it is.
TEST(Arrays, AreReadByContentNotByName) {
  const ScratchFolder folder;
  const Tensor x = array_of(ElementType::f32, {3, 2}, 7);
  for (const auto& [name, other] : {std::pair("a.npy", "a.h5"), std::pair("b.npz", "b.npy"),
                                    std::pair("c.h5", "c.NPZ"), std::pair("d.safetensors", "d.dat")}) {
    write_arrays(folder / name, {{"x", x}});
    std::filesystem::rename(folder / name, folder / other);
    expect_same_array(read_arrays(folder / other).begin()->second, x);
  }
  std::ofstream(folder / "e.h5") << "x,y\n1,2\n";
  expect_error(ErrorCode::bad_file, {"e.h5", "this is a text"}, [&] { read_arrays(folder / "e.h5"); });
}

// NumPy has no bf16; the values are those that f32 has, none lost.
TEST(Arrays, OfBf16AreF32ForNumPy) {
  const ScratchFolder folder;
  const Tensor x = array_of(ElementType::bf16, {4}, 6);
  for (const char* name : {"x.npy", "x.npz"}) {
    write_arrays(folder / name, {{"x", x}});
    expect_same_array(read_arrays(folder / name).begin()->second, x.converted(ElementType::f32));
  }
  write_arrays(folder / "x.safetensors", {{"x", x}});
  expect_same_array(read_arrays(folder / "x.safetensors").at("x"), x);
}

TEST(Arrays, OtherEndingsAreRefusedBeforeAnythingIsRead) {
  const ScratchFolder folder;
  for (const char* name : {"x.txt", "x", "x.npy.gz"}) {
    const auto refused = [&](auto&& action) {
      expect_error(ErrorCode::invalid_argument,
                   {"is not an ending for arrays", ".npy, .npz, .h5 or .safetensors"}, action);
    };
    refused([&] { read_arrays(folder / name); });
    refused([&] { write_arrays(folder / name, {}); });
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  }
  expect_error(ErrorCode::not_found, {"absent.npz"}, [&] { read_arrays(folder / "absent.npz"); });
}

}  // namespace
}  // namespace superstep::run
