#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/baseline/ptychography/autophase_run.h"
#include "superstep/page/isosurface.h"
#include "superstep/page/page.h"

namespace superstep::baseline {
namespace {

constexpr float pi = 3.14159265f;

// The plane through the middle, perpendicular to `axis`.
template <class F>
std::vector<float> middle_slice(const Field& field, int n, int axis, F value_of) {
  std::vector<float> slice;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      const int z = axis == 0 ? n / 2 : row, y = axis == 1 ? n / 2 : (axis == 0 ? row : column);
      const int x = axis == 2 ? n / 2 : column;
      slice.push_back(value_of(field[static_cast<std::size_t>((z * n + y) * n + x)]));
    }
  return slice;
}

page::Plot starts_plot(std::vector<double> chi2) {
  std::sort(chi2.begin(), chi2.end());
  page::Series series{"chi2 of a start", {}, chi2, {}, {}, page::Series::Style::points};
  for (std::size_t start = 1; start <= chi2.size(); ++start) series.x.push_back(static_cast<double>(start));
  page::Plot plot{"Starts, best first", "start", "chi2"};
  plot.series = {series};
  return plot;
}

}  // namespace

void add_object_slices(std::vector<page::Picture>& pictures, const Field& field, int n,
                       const std::string& which) {
  const int scale = std::max(1, 128 / n);
  const char* planes[] = {"y-x", "z-x", "z-y"};
  for (int axis = 0; axis < 3; ++axis) {
    const auto modulus = middle_slice(field, n, axis, [](auto value) { return std::abs(value); });
    pictures.push_back({page::colored(modulus, n, n, page::Colormap::gray, 0.0f, 1.2f),
                        fmt::format("{} modulus, plane {}", which, planes[axis]),
                        {},
                        scale,
                        page::ColorBar{page::Colormap::gray, "0", "1.2", "modulus"}});
  }
  for (int axis = 0; axis < 3; ++axis) {
    const auto phase = middle_slice(
        field, n, axis, [](auto value) { return std::abs(value) > 0.3f ? std::arg(value) : 0.0f; });
    pictures.push_back({page::colored(phase, n, n, page::Colormap::phase, -pi, pi),
                        fmt::format("{} phase, plane {}", which, planes[axis]),
                        {},
                        scale,
                        page::phase_bar()});
  }
}

std::vector<page::Picture> turning_crystals(std::span<const NamedCube> cubes, int n) {
  constexpr int frames = 24, pixels = 144;  // a quarter of a megabyte a crystal
  const float middle = 0.5f * static_cast<float>(n - 1);
  const page::Point centre{middle, middle, middle};
  std::vector<page::Mesh> meshes;
  double reach = 1;
  for (const NamedCube& cube : cubes) {
    std::vector<float> modulus;
    for (const auto& value : cube.field) modulus.push_back(std::abs(value));
    meshes.push_back(page::isosurface(modulus, n, n, n, 0.5f));
    reach = std::max(reach, 1.05 * page::radius_of(meshes.back(), centre));
  }
  std::vector<page::Picture> pictures;
  for (std::size_t i = 0; i < cubes.size(); ++i)
    pictures.push_back(
        {.image = page::turning(meshes[i], page::angles_on(meshes[i], cubes[i].field),
                                {.centre = centre, .reach = reach, .frames = frames, .pixels = pixels}),
         .caption = cubes[i].caption,
         .marks = {},
         .bar = page::phase_bar(),
         .frames = frames});
  return pictures;
}

namespace {

// Every start of the first crystal over its seconds, and the answers as lines.
page::Plot traces_plot(const ComparedCrystal& crystal, std::span<const CrystalAnswers> answers) {
  page::Plot plot{"On the way", "seconds of one thread", "chi2", false, true};
  for (std::size_t start = 0; start < std::min<std::size_t>(3, crystal.traces.size()); ++start)
    plot.series.push_back({fmt::format("random start {}", start + 1),
                           crystal.traces[start].seconds,
                           crystal.traces[start].chi2,
                           {},
                           {}});
  for (std::size_t file = 0; file < answers.size(); ++file) {
    const AnswerResult& answer = crystal.answers[file];
    plot.series.push_back({"from " + answers[file].name(), answer.trace.seconds, answer.trace.chi2, {}, {}});
    plot.horizontal.push_back({answer.own.chi2, answers[file].name()});
  }
  return plot;
}

}  // namespace

void write_retrieval_page(const std::filesystem::path& path, const CrystalResult& result, int n,
                          std::span<const CrystalAnswers> answers, const std::string& table) {
  page::Page page("Phase retrieval");
  page.paragraph(fmt::format("Crystal {}: chi2 {:.5f}, the best of {} starts, {} of one thread.",
                             result.sample, result.chi2, result.start_chi2.size(),
                             format_seconds(result.seconds)));
  if (result.comparison) {
    page.paragraph(fmt::format(
        "Intersection over union {:.3f}, phase error {:.3f} rad rms, structural similarity {:.4f}, "
        "after removing global phase and shift{}.",
        result.comparison->iou, result.comparison->phase_rms, result.comparison->ssim,
        result.twin ? " and taking the twin" : ""));
    std::vector<page::Picture> truth;
    add_object_slices(truth, result.truth, n, "true");
    page.heading("True").pictures(truth);
  }
  std::vector<NamedCube> cubes;
  if (result.comparison) cubes.push_back({"true surface, in the colors of its phase", result.truth});
  cubes.push_back({"retrieved surface", result.object});
  std::vector<page::Picture> found;
  add_object_slices(found, result.object, n, "retrieved");
  page.heading("Retrieved").pictures(found);
  page.heading("Surfaces at half the modulus, turning around z").pictures(turning_crystals(cubes, n));
  page.begin_row().plot(starts_plot(result.start_chi2));
  if (result.compared) page.plot(traces_plot(*result.compared, answers));
  page.end_row();
  if (result.compared) {
    page.heading("Answers at hand beside retrievals");
    page.paragraph(
        "Means over the crystals. Overlap is that of the aligned object with the true one, phase and shape "
        "at "
        "once. Seconds are those of one thread; of the answers, what their file says that they took. The "
        "last "
        "columns are the seconds until a retrieval overlapped the truth as much as the answers (without a "
        "truth: "
        "had their chi2, which a loose support makes small), and in how many of the crystals it came to "
        "that.");
    page.preformatted(table);
  }
  page.write(path);
}

}  // namespace superstep::baseline
