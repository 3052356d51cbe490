// Sections of cathodes in files: generated, and as a network sees them in their micrographs.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/progress.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workflow/conductivity/served.h"
#include "superstep/workflow/conductivity/study.h"

namespace superstep::workflow {
namespace {

namespace fs = std::filesystem;

// Seeds of what the networks learn from, of what they are judged by, and of what the denoiser learns from.
enum Part : std::uint64_t { of_networks, of_test, of_denoiser };
constexpr std::uint64_t seeds_a_study = 3;

std::unique_ptr<data::Generator> generator_of(const ConductivityStudy& study) {
  const data::GeneratorEntry& entry = data::find_generator("conductivity");
  const std::vector<std::string> settings{fmt::format("size={}", study.side)};
  return entry.make(Options(entry.options, settings));
}

void generate(const ConductivityStudy& study, const char* name, std::int64_t count, Part part,
              ThreadPool& pool) {
  if (fs::exists(study.file(name))) return;
  generator_of(study)->write({.path = study.file(name),
                              .seed = study.seed * seeds_a_study + part,
                              .samples = static_cast<std::uint64_t>(count),
                              .pool = &pool});
}

// As the denoiser's workload reads them: the micrograph in three channels, the section as mask, and every
// section a patient of its own.
void write_for_denoiser(const ConductivityStudy& study, ThreadPool& pool) {
  const auto generator = generator_of(study);
  data::Hdf5Writer file(study.file("micrographs.h5"));
  const std::int64_t n = study.micrographs, side = study.side;
  file.create("image", ElementType::u8, {n, 3, side, side});
  file.create("mask", ElementType::u8, {n, side, side});
  file.create("patient", ElementType::i32, {n});
  constexpr std::int64_t block = 64;
  Progress progress("generating micrographs", static_cast<double>(n), "samples");
  for (std::int64_t first = 0; first < n; first += block) {
    data::throw_if_interrupted();
    const std::int64_t count = std::min(block, n - first);
    const std::vector<Tensor> fields =
        data::generate_in_memory(*generator, study.seed * seeds_a_study + of_denoiser,
                                 static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(count), pool);
    Tensor channels(ElementType::u8, {count, 3, side, side}), patient(ElementType::i32, {count});
    const auto plane = static_cast<std::size_t>(side * side);
    for (std::int64_t k = 0; k < 3 * count; ++k)
      std::ranges::copy(fields[1].as<std::uint8_t>().subspan(static_cast<std::size_t>(k / 3) * plane, plane),
                        channels.as<std::uint8_t>().begin() + k * side * side);
    for (std::int64_t k = 0; k < count; ++k) patient.set(k, static_cast<double>(first + k));
    file.write_rows("image", first, channels);
    file.write_rows("mask", first, fields[0]);
    file.write_rows("patient", first, patient);
    progress.update(static_cast<double>(first + count));
  }
  file.close();
}

Tensor f32_of(std::span<const double> values) {
  Tensor tensor(ElementType::f32, {static_cast<std::int64_t>(values.size())});
  std::ranges::transform(values, tensor.as<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return tensor;
}

std::vector<double> column(const data::Hdf5File& file, const char* name, std::int64_t count) {
  const std::int64_t shape[] = {count};
  const Tensor values = file.read(name, ElementType::f64, shape);
  return {values.as<double>().begin(), values.as<double>().end()};
}

constexpr std::int64_t sections_a_part = 256;  // chosen: a second or a few of work

// What the network makes of some of the micrographs: a conductor where its probability is one half or more.
Tensor denoised(Served& network, const Sections& sections, std::int64_t begin, std::int64_t end, int side) {
  Tensor masks(ElementType::u8, {end - begin, side, side});
  const std::int64_t plane = std::int64_t{side} * side;
  network.run(
      end - begin,
      [&](std::int64_t first, std::int64_t count, std::span<Tensor> inputs) {
        const auto pixels = inputs[0].as<float>();
        for (std::int64_t k = 0; k < 3 * count; ++k)
          std::ranges::transform(sections.micrograph(begin + first + k / 3), pixels.begin() + k * plane,
                                 [](std::uint8_t byte) { return static_cast<float>(byte) / 255; });
      },
      [&](std::int64_t first, std::int64_t count, const Tensor& output) {
        const auto found = output.as<float>().first(static_cast<std::size_t>(count * plane));
        std::ranges::transform(found, masks.as<std::uint8_t>().begin() + first * plane,
                               [](float value) { return static_cast<std::uint8_t>(value >= 0.5f); });
      });
  return masks;
}

// One part of a file: masks, solved.
void denoise_part(const ConductivityStudy& study, Served& network, const Sections& sections,
                  std::int64_t begin, std::int64_t end, const fs::path& to, ThreadPool& pool) {
  const Tensor masks = denoised(network, sections, begin, end, study.side);
  const std::size_t plane = sections.image(0).size();
  std::vector<double> effective(static_cast<std::size_t>(end - begin));
  pool.parallel_for(end - begin, [&](std::int64_t k, int) {
    data::throw_if_interrupted();
    const auto at = static_cast<std::size_t>(k);
    effective[at] = sections.sigma[static_cast<std::size_t>(begin + k)] *
                    solved_ratio(masks.as<std::uint8_t>().subspan(at * plane, plane), study.side);
  });
  const std::span sigma(sections.sigma);
  data::Hdf5Writer file(to);
  file.write("image", masks);
  file.write("sigma", f32_of(sigma.subspan(static_cast<std::size_t>(begin), effective.size())));
  file.write("sigma_eff", f32_of(effective));
  file.close();
}

void join_parts(const std::vector<fs::path>& parts, std::int64_t count, int side, const fs::path& to) {
  data::Hdf5Writer file(to);
  file.create("image", ElementType::u8, {count, side, side});
  file.create("sigma", ElementType::f32, {count});
  file.create("sigma_eff", ElementType::f32, {count});
  std::int64_t first = 0;
  for (const fs::path& path : parts) {
    const data::Hdf5File part(path);
    const Tensor masks = part.read("image", ElementType::u8);
    file.write_rows("image", first, masks);
    file.write_rows("sigma", first, part.read("sigma", ElementType::f32));
    file.write_rows("sigma_eff", first, part.read("sigma_eff", ElementType::f32));
    first += masks.shape()[0];
  }
  file.close();
}

// Part by part: a call that is stopped loses one of them.
void denoise_file(const ConductivityStudy& study, Served& network, const char* from, const char* to,
                  ThreadPool& pool) {
  if (fs::exists(study.file(to))) return;
  const Sections sections = read_sections(study.file(from));
  const fs::path folder = study.file(to).replace_extension("parts");
  fs::create_directories(folder);
  std::vector<fs::path> parts;
  Progress progress("denoising and solving", static_cast<double>(sections.count()), "sections");
  for (std::int64_t begin = 0; begin < sections.count(); begin += sections_a_part) {
    const std::int64_t end = std::min(begin + sections_a_part, sections.count());
    parts.push_back(folder / fmt::format("{:08}.h5", begin));
    if (!fs::exists(parts.back())) denoise_part(study, network, sections, begin, end, parts.back(), pool);
    progress.update(static_cast<double>(end));
  }
  join_parts(parts, sections.count(), study.side, study.file(to));
  fs::remove_all(folder);
}

}  // namespace

// A file that is there is whole.
void make_sections(const ConductivityStudy& study, ThreadPool& pool) {
  generate(study, "sections.h5", study.samples, of_networks, pool);
  generate(study, "test.h5", study.test, of_test, pool);
  if (!fs::exists(study.file("micrographs.h5"))) write_for_denoiser(study, pool);
}

void denoise_sections(const ConductivityStudy& study, ThreadPool& pool) {
  constexpr std::int64_t batch = 16;
  Served network(study.denoiser(), batch, study.threads);
  denoise_file(study, network, "sections.h5", "sections-denoised.h5", pool);
  denoise_file(study, network, "test.h5", "test-denoised.h5", pool);
}

std::span<const std::uint8_t> Sections::at(const Tensor& stack, std::int64_t k) {
  const auto plane = static_cast<std::size_t>(stack.shape()[1] * stack.shape()[2]);
  return stack.as<std::uint8_t>().subspan(static_cast<std::size_t>(k) * plane, plane);
}

Sections read_sections(const fs::path& path) {
  const data::Hdf5File file(path);
  const std::int64_t any[] = {-1, -1, -1};
  Sections sections{
      .images = file.read("image", ElementType::u8, any), .micrographs = {}, .sigma = {}, .ratio = {}};
  if (file.contains("sem")) sections.micrographs = file.read("sem", ElementType::u8, any);
  sections.sigma = column(file, "sigma", sections.count());
  sections.ratio = column(file, "sigma_eff", sections.count());
  for (std::size_t k = 0; k < sections.ratio.size(); ++k) sections.ratio[k] /= sections.sigma[k];
  return sections;
}

double solved_ratio(std::span<const std::uint8_t> image, int side) {
  return data::effective_conductivity(image, side, side, 1, 0).effective;
}

}  // namespace superstep::workflow
