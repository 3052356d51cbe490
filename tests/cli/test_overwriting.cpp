// What a call would write over: its own input, or a file that is no page.
#include <gtest/gtest.h>

#include "superstep/base/file.h"
#include "superstep/file/npz.h"
#include "superstep/file/zip.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

void expect_said(const ScratchFolder& folder, const std::string& arguments, int code,
                 const std::string& part) {
  const Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  EXPECT_TRUE(contains(outcome.output + outcome.errors, part)) << arguments;
}

TEST(Overwriting, ItsOwnInputIsRefused) {
  const ScratchFolder folder;
  data::write_npz(folder / "x.npz", {{"x", Tensor(ElementType::f32, {2, 3})}});
  const std::string before = read_text_file(folder / "x.npz");
  expect_said(folder, "show x.npz --out x.npz", 2, "would be overwritten");
  expect_said(folder, "infer mlp --input x.npz --output x.npz", 2, "--input and --output are the same file");
  std::filesystem::create_hard_link(folder / "x.npz", folder / "link.npz");
  expect_said(folder, "show x.npz --json link.npz", 2, "FILE and --json are the same file");
  EXPECT_EQ(read_text_file(folder / "x.npz"), before);
  expect_said(folder, "show x.npz --out both --json ./both", 2, "are the same file");
  EXPECT_FALSE(std::filesystem::exists(folder / "both"));
}

TEST(Overwriting, APageIsNotWrittenOverSomethingElse) {
  const ScratchFolder folder;
  data::write_npz(folder / "x.npz", {{"x", Tensor(ElementType::f32, {2, 3})}});
  write_file_atomically(folder / "notes.txt", std::string_view("what was seen\n"));
  expect_said(folder, "show x.npz --out notes.txt", 2, "would be written over this file");
  EXPECT_EQ(read_text_file(folder / "notes.txt"), "what was seen\n");
  for (int twice = 0; twice < 2; ++twice) expect_said(folder, "show x.npz --out page.html", 0, "written");
}

TEST(Overwriting, ShowFindsANameOfItsOwn) {
  const ScratchFolder folder;
  data::write_npz(folder / "x.npz", {{"x", Tensor(ElementType::f32, {2, 3})}});
  for (const char* name : {"x.html", "x-2.html", "x-3.html"}) {
    expect_said(folder, "show x.npz", 0, name);
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
}

TEST(WrongKindOfFile, IsNamedWithTheNextCommand) {
  const ScratchFolder folder;
  const auto text = [](std::string_view bytes) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    return std::vector<std::byte>(begin, begin + bytes.size());
  };
  data::write_zip(folder / "net.pt", {{"net/data.pkl", text("\x80\x02"
                                                            "c__main__\nNet\nq\x01)\x81")}});
  for (const std::string call : {"infer net.pt", "train net.pt", "predict net.pt --on gc200",
                                 "show net.pt --out x.html", "serve net.pt", "infer mlp --weights net.pt"})
    expect_said(folder, call, 1, "torch.onnx.export");
  for (const char* name : {"absent.pt", "absent.h5", "absent.onnx", "folder/model"})
    expect_said(folder, std::string("infer ") + name, 1, "there is no such file");
  // Weights of PyTorch are an archive as npz files are.
  data::write_zip(folder / "state.pt", {{"s/data.pkl", text("\x80\x02}q\x01.")}});
  expect_said(folder, "infer state.pt", 2, "these are weights without a model");
  data::write_npz(folder / "data.dat", {{"x", Tensor(ElementType::f32, {2, 3})}});
  expect_said(folder, "infer data.dat", 2, "this is a file of data");
  write_file_atomically(folder / "some", std::string_view("text\n"));
  expect_said(folder, "train some", 2, "neither a model nor the name of a workload");
}

}  // namespace
}  // namespace superstep
