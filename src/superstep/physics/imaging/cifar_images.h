// Images of classes that differ in texture, shape and colour, for image classifiers.
//
// Class k of C has the texture family k mod 4, the shape k mod 5 and, beyond 20 classes, the palette
// (k / 20) mod 5; with 20 classes or fewer the palette is drawn at random. Everything else is drawn for
// each image: place, size, direction, colours within the palette, which of two colours is the lighter,
// light, a rectangle in front, noise. `difficulty` from 0 to 1 scales what hinders.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/physics/imaging/textures.h"

namespace superstep::data {

enum class ShapeFamily { disc, square, triangle, ring, cross };
inline constexpr int shape_families = 5, palettes = 5, most_classes = 100;

struct ClassTraits {
  TextureFamily texture;
  ShapeFamily shape;
  int palette;  // -1: any
};
ClassTraits traits_of_class(int label, int classes);

struct ClassImage {
  int label = 0, palette = 0;
  double x = 0, y = 0, radius = 0, angle = 0;  // of the shape, in units of the image's side, rad
  double wavelength = 0;                       // of the texture, in the same unit
  double occluded = 0;                         // share of the image behind the rectangle
  double noise = 0;                            // standard deviation, white is 1
  std::vector<std::uint8_t> pixels;            // [3, size, size], red, green, blue
};

ClassImage draw_class_image(RandomStream& random, int size, int classes, double difficulty);

}  // namespace superstep::data
