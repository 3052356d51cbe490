// Pictures side by side in one PNG file, for documents that cannot hold a page.
#pragma once

#include <filesystem>
#include <span>

#include "superstep/page/page.h"

namespace superstep::baseline {

// Does the name ask for a PNG file rather than a page?
bool is_png_path(const std::filesystem::path& path);

// Rows of `columns` pictures, each enlarged by its scale, on white; captions and marks are left out. Throws
// Error (invalid_argument) without pictures, (io) when the file cannot be written.
page::Image picture_sheet(std::span<const page::Picture> pictures, int columns);
void write_picture_sheet(const std::filesystem::path& path, std::span<const page::Picture> pictures,
                         int columns);

}  // namespace superstep::baseline
