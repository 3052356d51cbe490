// The pages of docs/ say what is so: their code is that of the examples, what they name exists.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/physics/generator.h"
#include "tests/contains.h"
#include "tests/docs/pages.h"

namespace superstep::docs {
namespace {

namespace fs = std::filesystem;

const fs::path root = SUPERSTEP_SOURCE;

std::vector<fs::path> files_of(const fs::path& folder, const std::string& start, const std::string& end) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start) && name.ends_with(end)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const char* name : {"README.md", "CONTRIBUTING.md"})
    if (fs::exists(root / name)) files.push_back(root / name);
  return files;
}

std::string page(const std::string& name) { return read_text_file(root / "docs" / name); }

// The sections of all examples, by the page they belong to.
std::map<std::string, std::vector<std::string>> example_code() {
  std::map<std::string, std::vector<std::string>> code;
  for (const fs::path& file : files_of(root / "tests/docs", "example_", ".cpp")) {
    const std::string source = read_text_file(file);
    for (const std::string& name : section_names(source)) code[name] = sections(source, name);
  }
  return code;
}

TEST(Pages, ShowTheCodeThatIsTested) {
  const auto code = example_code();
  for (const fs::path& file : files_of(root / "docs", "add-", ".md")) {
    const std::string name = file.stem().string();
    ASSERT_TRUE(code.contains(name)) << "no example_*.cpp has a section [" << name << "]";
    EXPECT_EQ(code_blocks(read_text_file(file), "cpp"), code.at(name)) << file;
  }
  for (const auto& [name, parts] : code) {
    ASSERT_TRUE(fs::exists(root / "docs" / (name + ".md"))) << name;
    EXPECT_EQ(code_blocks(page(name + ".md"), "cpp"), parts) << name;
  }
}

TEST(Pages, NameFilesThatExist) {
  std::size_t checked = 0;
  for (const fs::path& file : pages())
    for (const std::string& path : repository_paths(read_text_file(file), root)) {
      EXPECT_TRUE(exists_in_repository(path, root)) << file << ": `" << path << "`";
      ++checked;
    }
  EXPECT_GT(checked, 50U);
}

TEST(Pages, HaveLinksThatResolve) {
  std::size_t checked = 0, below = 0;
  for (const fs::path& file : pages())
    for (const std::string& target : relative_links(read_text_file(file))) {
      EXPECT_TRUE(fs::exists(file.parent_path() / target)) << file << ": (" << target << ")";
      ++checked;
      below += file.parent_path() == root / "docs/cpu";
    }
  EXPECT_GT(checked, 50U);
  EXPECT_GT(below, 5U) << "pages in folders are looked at too";
}

// A page that nothing leads to is read by nobody.
TEST(Pages, AreLinkedFromAnother) {
  std::set<fs::path> linked;
  for (const fs::path& file : pages())
    for (const std::string& target : relative_links(read_text_file(file)))
      linked.insert(fs::weakly_canonical(file.parent_path() / target));
  for (const fs::path& file : pages())
    EXPECT_TRUE(file.filename() == "README.md" || linked.contains(fs::weakly_canonical(file))) << file;
}

// --- what a page lists is complete

TEST(Pages, EveryPackageIsExplained) {
  const std::string setup = read_text_file(root / "tools/setup"), text = page("dependencies.md");
  const std::size_t begin = setup.find("packages=(") + 10;
  std::istringstream list(setup.substr(begin, setup.find("\n)") - begin));
  std::size_t count = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.find('#') != std::string::npos) continue;
    std::istringstream words(line);
    for (std::string package; words >> package; ++count)
      EXPECT_TRUE(text.find("`" + package + "`") != std::string::npos) << package;
  }
  EXPECT_GT(count, 15U);
}

TEST(Pages, EveryFieldOfBraggPatchesIsExplained) {
  const data::GeneratorEntry& entry = data::find_generator("braggnn");
  const std::vector<std::string> settings{"overlap=0.1"};
  const auto generator = entry.make(Options(entry.options, settings));
  const std::string text = page("files.md");
  for (const data::Field& field : generator->fields()) EXPECT_TRUE(contains(text, "`" + field.name + "`"));
}

// --- the checks can fail

TEST(PageChecks, SeeCodeThatDrifted) {
  const std::string shown = "text\n```cpp\nint a = 1;\n```\n";
  EXPECT_EQ(code_blocks(shown, "cpp"), sections("// [p]\nint a = 1;\n// [end]\n", "p"));
  EXPECT_NE(code_blocks(shown, "cpp"), sections("// [p]\nint a = 2;\n// [end]\n", "p"));
  EXPECT_TRUE(code_blocks(shown, "sh").empty());
  EXPECT_EQ(section_names("// [p]\nx\n// [end]\n// [p]\n"), (std::vector<std::string>{"p", "p"}));
}

TEST(PageChecks, SeePathsThatAreNotThere) {
  const std::string text =
      "`graph/graph.h` `graph/grahp.h` `tests/ROOM` `tools/tidy` `docs/no.md` `a/b` `build/x/y`\n"
      "`example_*.cpp` `run/peaks.h5` `run/trian.h`\n```\n`op/none.h`\n```\n";
  std::vector<std::string> missing;
  for (const std::string& path : repository_paths(text, root))
    if (!exists_in_repository(path, root)) missing.push_back(path);
  EXPECT_EQ(missing, (std::vector<std::string>{"graph/grahp.h", "docs/no.md", "run/trian.h"}));
}

TEST(PageChecks, SeeLinks) {
  EXPECT_EQ(relative_links("[a](x.md) [b](https://x.org/y) [c](../d/e.md#part) [d](#here)"),
            (std::vector<std::string>{"x.md", "../d/e.md"}));
}

}  // namespace
}  // namespace superstep::docs
